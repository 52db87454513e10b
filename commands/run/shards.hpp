#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "commands/run/run_options.hpp"
#include "core/typed_numbers.hpp"
#include "forecast/forecast.hpp"
#include "report/results/manifest.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// The shard that these options ask for.
ShardRun shard_of(const Scenario& scenario, const RunOptions& options, const Manifest& manifest);

/// Refuses shards that do not belong together: of other builds, scenarios or options. @throws InputError
void check_same_run(const std::vector<ShardRun>& shards);

/// Refuses a shard whose input files have changed since. Files are compared by role, name and content, so
/// that they may lie in other folders now. @throws InputError
void check_same_inputs(const ShardRun& shard, const Manifest& now);

/// A run that Slurm shares among the tasks of a job array.
struct SlurmRun {
  std::string name = {};                                        ///< of the scenario
  std::filesystem::path program = {}, current = {}, data = {};  ///< absolute paths: stepcast, folders
  std::filesystem::path scenario = {};    ///< as the user wrote it, so that messages are those of a run
  std::filesystem::path folder = {};      ///< absolute path of the results
  std::vector<std::string> options = {};  ///< of `run`, for every part
  int tasks = 1;
  int processes = 1;   ///< cores of each task
  bool advice = true;  ///< the merge simulates what a user can change
};

/// The number of tasks: at most `most` and one for each point, and each with at least a minute of work.
/// @param work  processor time of all simulations
int slurm_tasks(int most, std::size_t points, Seconds work, int processes);

/// The run as Slurm sees it, with absolute paths.
SlurmRun slurm_run(const Scenario& scenario, const RunOptions& options, const std::filesystem::path& folder,
                   int tasks);

/// Scripts for bash: the parts as a job array, the merge of all parts, and the submission of both. The merge
/// starts when all tasks have ended, even if some failed; it then names the points without results.
std::string array_script(const SlurmRun& run);
std::string merge_script(const SlurmRun& run);
std::string submit_script();

/// Writes the scripts to the folder `slurm` in the results folder, and submits them unless `only_write`.
/// Prints what was done.
/// @throws InputError if sbatch is missing or refuses a job, with its message
void start_slurm(const SlurmRun& run, bool only_write);

}  // namespace stepcast
