#include "commands/run/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "core/os/child_process.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kLeastWork{60};  // of a task: starting one takes Slurm seconds

/// One word of a command for bash.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./=,:+%@") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

/// The first lines of both scripts. Log files have the number of the job, and of the task, in their names.
std::string begun(const SlurmRun& run, const std::string& job, const std::string& log, int cores,
                  const std::string& more) {
  return fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n"
      "{}"
      "#SBATCH --cpus-per-task={}\n"
      "#SBATCH --output={}\n"
      "set -eu\n"
      "cd {}\n"
      "export STEPCAST_DATA={}\n",
      job, more, cores, log, quoted(run.current.string()), quoted(run.data.string()));
}

}  // namespace

int slurm_tasks(int most, std::size_t points, Seconds work, int processes) {
  const double minutes = std::floor(work / kLeastWork / processes);
  const double tasks = std::min({static_cast<double>(most), static_cast<double>(points), minutes});
  return std::max(1, static_cast<int>(tasks));
}

SlurmRun slurm_run(const Scenario& scenario, const RunOptions& options, const fs::path& folder, int tasks) {
  SlurmRun run{.name = scenario.name,
               .program = fs::read_symlink("/proc/self/exe"),
               .current = fs::current_path(),
               .data = fs::absolute(data_folder()),
               .scenario = scenario.file,
               .folder = fs::absolute(folder),
               .options = {},
               .tasks = tasks,
               .processes = options.processes};
  if (options.draws > 0) run.options = {"--draws", std::to_string(options.draws)};
  for (const std::string& setting : options.settings)
    run.options.insert(run.options.end(), {"--set", setting});
  if (!options.memory_limit.empty())
    run.options.insert(run.options.end(), {"--memory-limit", options.memory_limit});
  if (!options.time_limit.empty())
    run.options.insert(run.options.end(), {"--time-limit", options.time_limit});
  if (options.results_only) run.options.push_back("--results-only");
  return run;
}

std::string array_script(const SlurmRun& run) {
  std::string words;
  for (const std::string& word : run.options) words += " " + quoted(word);
  return begun(run, run.name, "part-%A-%a.log", run.processes,
               fmt::format("#SBATCH --array=0-{}\n", run.tasks - 1)) +
         fmt::format(
             "exec {} run {}{} -j {} --resume --shard \"$SLURM_ARRAY_TASK_ID/{}\" -o "
             "{}\"/$SLURM_ARRAY_TASK_ID\"\n",
             quoted(run.program.string()), quoted(run.scenario.string()), words, run.processes, run.tasks,
             quoted((run.folder / "parts").string()));
}

std::string merge_script(const SlurmRun& run) {
  return begun(run, run.name + "-merge", "merge-%j.log", 1, "") +
         fmt::format("exec {} merge {}/{{0..{}}} -o {}\n", quoted(run.program.string()),
                     quoted((run.folder / "parts").string()), run.tasks - 1, quoted(run.folder.string()));
}

std::string submit_script() {
  return "#!/bin/bash\n"
         "# Submits the parts and their merge, which waits for them. The file `jobs` gets the numbers of "
         "both jobs.\n"
         "set -eu\n"
         "cd \"$(dirname \"$0\")\"\n"
         "parts=$(sbatch --parsable array.sh)\n"
         "merge=$(sbatch --parsable --dependency=\"afterany:${parts%%;*}\" merge.sh)\n"
         "echo \"${parts%%;*} ${merge%%;*}\" >jobs\n";
}

void start_slurm(const SlurmRun& run, bool only_write) {
  const fs::path scripts = run.folder / "slurm";
  check_writable(scripts);
  write_atomically(scripts / "array.sh", array_script(run));
  write_atomically(scripts / "merge.sh", merge_script(run));
  write_atomically(scripts / "submit.sh", submit_script());
  fmt::print("{}: {} task{} of Slurm in {}\n", run.name, run.tasks, run.tasks == 1 ? "" : "s",
             scripts.string());
  if (only_write) {
    fmt::print("not submitted: bash {} submits them\n", quoted((scripts / "submit.sh").string()));
    return;
  }
  const FinishedChild child = run_child({"bash", (scripts / "submit.sh").string()}, scripts);
  if (child.status != 0)
    throw InputError(fmt::format("--slurm: the jobs were not submitted: {}",
                                 child.errors.empty() ? "bash is missing" : child.errors));
  const std::string jobs = read_file(scripts / "jobs");
  const auto space = jobs.find(' ');
  fmt::print("submitted: job array {}, then the merge {}; results will be in {}\n", jobs.substr(0, space),
             jobs.substr(space + 1, jobs.find('\n') - space - 1), run.folder.string());
}

}  // namespace stepcast
