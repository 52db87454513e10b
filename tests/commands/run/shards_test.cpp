#include "commands/run/shards.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

namespace {

SlurmRun example() {
  return {.name = "big",
          .program = "/opt/stepcast/bin/stepcast",
          .current = "/home/a user",
          .data = "/opt/stepcast",
          .scenario = "/home/a user/big.yaml",
          .folder = "/scratch/big",
          .options = {"--draws", "8", "--set", "strategy.bucket=25 MiB", "--set", "name=it's"},
          .tasks = 3,
          .processes = 4};
}

}  // namespace

TEST_CASE("the array script of Slurm runs one shard a task and quotes every word", "[commands]") {
  CHECK(
      array_script(example()) ==
      "#!/bin/bash\n"
      "#SBATCH --job-name=big\n"
      "#SBATCH --array=0-2\n"
      "#SBATCH --cpus-per-task=4\n"
      "#SBATCH --output=part-%A-%a.log\n"
      "set -eu\n"
      "cd '/home/a user'\n"
      "export STEPCAST_DATA=/opt/stepcast\n"
      "exec /opt/stepcast/bin/stepcast run '/home/a user/big.yaml' --draws 8 --set 'strategy.bucket=25 MiB' "
      "--set 'name=it'\\''s' -j 4 --resume --shard \"$SLURM_ARRAY_TASK_ID/3\" -o "
      "/scratch/big/parts\"/$SLURM_ARRAY_TASK_ID\"\n");
}

TEST_CASE("the merge script of Slurm names the parts in order", "[commands]") {
  CHECK(merge_script(example()) ==
        "#!/bin/bash\n"
        "#SBATCH --job-name=big-merge\n"
        "#SBATCH --cpus-per-task=1\n"
        "#SBATCH --output=merge-%j.log\n"
        "set -eu\n"
        "cd '/home/a user'\n"
        "export STEPCAST_DATA=/opt/stepcast\n"
        "exec /opt/stepcast/bin/stepcast merge /scratch/big/parts/{0..2} -o /scratch/big\n");
}

TEST_CASE("a task of Slurm has at least a minute of work and a point", "[commands]") {
  CHECK(slurm_tasks(200, 100'000, {86'400}, 1) == 200);
  CHECK(slurm_tasks(200, 100'000, {720}, 1) == 12);
  CHECK(slurm_tasks(200, 100'000, {720}, 4) == 3);
  CHECK(slurm_tasks(200, 100'000, {10}, 1) == 1);
  CHECK(slurm_tasks(200, 7, {86'400}, 1) == 7);
}
