#include "commands/run/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "commands/commands.hpp"
#include "commands/fingerprint.hpp"
#include "commands/run/finish.hpp"
#include "commands/scenario_options.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "core/os/process.hpp"
#include "forecast/measured/measurements.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {

namespace fs = std::filesystem;

namespace {

std::string file_name(const std::string& path) {
  return fs::path(path).filename().string();
}

}  // namespace

ShardRun shard_of(const Scenario& scenario, const RunOptions& options, const Manifest& manifest) {
  return {.build = build_id(),
          .scenario = scenario.file.string(),
          .settings = options.settings,
          .draws = options.draws,
          .shard = options.shard,
          .shards = options.shards,
          .results_only = options.results_only,
          .inputs = manifest.inputs};
}

void check_same_run(const std::vector<ShardRun>& shards) {
  const ShardRun& first = shards.front();
  for (const ShardRun& one : shards) {
    const auto refuse = [&](const char* what) {
      throw InputError(fmt::format("{}: expected a shard of the same run as {}, but {} differs",
                                   one.folder.string(), first.folder.string(), what));
    };
    if (one.build != build_id())
      throw InputError(
          fmt::format("{}: another build of stepcast ran this shard; merge with that build, or run it again",
                      one.folder.string()));
    if (file_name(one.scenario) != file_name(first.scenario)) refuse("the scenario");
    if (one.settings != first.settings) refuse("--set");
    if (one.draws != first.draws) refuse("--draws");
    if (one.results_only != first.results_only) refuse("--results-only");
  }
}

void check_same_inputs(const ShardRun& shard, const Manifest& now) {
  for (const InputFile& then : shard.inputs) {
    const auto same = [&](const InputFile& one) {
      return one.role == then.role && file_name(one.path) == file_name(then.path) &&
             one.sha256 == then.sha256;
    };
    if (std::ranges::none_of(now.inputs, same))
      throw InputError(fmt::format("{}: the {} {} has changed since this shard was run; run it again",
                                   shard.folder.string(), then.role, then.path));
  }
}

namespace {

struct MergeOptions {
  std::vector<std::string> folders;
  std::string output, scenario;
  bool no_advice = false;
};

std::vector<ShardRun> read_shards(const std::vector<std::string>& folders) {
  std::vector<ShardRun> shards;
  for (const std::string& folder : folders) shards.push_back(read_shard_folder(folder));
  check_same_run(shards);
  return shards;
}

/// The results of a merge remove what an earlier run left in their folder, such as shard.json.
void check_output(const fs::path& output, const std::vector<ShardRun>& shards) {
  for (const ShardRun& shard : shards) {
    std::error_code error;
    if (fs::equivalent(output, shard.folder, error))
      throw InputError(
          fmt::format("{}: expected another folder for the results than those of the shards; name "
                      "one with -o",
                      output.string()));
  }
}

void merge(const MergeOptions& options) {
  const SignalGuard guard;
  const std::vector<ShardRun> shards = read_shards(options.folders);
  const ShardRun& first = shards.front();
  const std::vector<Assignment> settings = parse_assignments(first.settings);
  Library library;
  Scenario scenario = with_measured_points(
      read_scenario(options.scenario.empty() ? first.scenario : options.scenario, settings), library);
  const fs::path folder = results_folder(options.output, scenario.name);
  check_output(folder, shards);
  for (const std::string& line : leave_out_lost_figures(scenario)) fmt::print("{}\n", line);

  const CheckedPoints checked = checked_points(scenario, all_points(scenario), library);
  const PreparedRun prepared = prepared_run(scenario, checked.largest, first.draws, library);
  Manifest manifest = manifest_of(prepared.scenario, library, first.settings);
  manifest.seed = checked.largest.seed;
  for (const ShardRun& shard : shards) check_same_inputs(shard, manifest);
  std::vector<fs::path> journals;
  for (const ShardRun& shard : shards) journals.push_back(shard.folder / "simulations.jsonl");
  const ForecastOptions wanted{
      .draws = prepared.draws,
      .points = all_points(scenario),
      .failed = checked.failed,
      .journal = {},
      .what_if = !first.results_only,
      .discrepancy = prepared.has_discrepancy,
      .inspect = column_check(scenario),
  };
  Simulations all = collected(prepared.scenario, merged_journals(journals), wanted);
  check_writable(folder);
  const FolderLock lock(folder);
  const std::size_t failed = all.failed.size();
  const FinishedRun run{.prepared = prepared,
                        .checked = checked,
                        .manifest = std::move(manifest),
                        .folder = folder,
                        .settings = first.settings,
                        .plots = !first.results_only,
                        .advice = !first.results_only && !options.no_advice,
                        .processes = jobs_or_cores(0)};
  const FinishedOutputs finished = finish_run(run, library, std::move(all));
  print_published(finished.published);
  finished.missing.report(folder, "free some space and merge again");
  fmt::print("written: {}\n", folder.string());
  report_failed_points(failed);
}

}  // namespace

void add_merge(Command app) {
  const Command command = app.add_subcommand(
      "merge", "Put the shards of a run together. The results equal those of one run of all points.");
  auto options = std::make_shared<MergeOptions>();
  command.add_option("folder", options->folders, "The results folders of all shards (run --shard).")
      .required()
      .type_name("DIR");
  add_results_folder(command, options->output);
  command
      .add_option("--scenario", options->scenario,
                  "The scenario's file, if it is not where the shards found it.")
      .type_name("FILE");
  add_no_advice(command, options->no_advice);
  command.callback([options] { merge(*options); }, Command::Json::yes);
  command.footer(
      "Example: stepcast run scenarios/quickstart.yaml --shard 0/2 -o /tmp/part0\n"
      "         stepcast run scenarios/quickstart.yaml --shard 1/2 -o /tmp/part1\n"
      "         stepcast merge /tmp/part0 /tmp/part1 -o /tmp/quick");
}

namespace {

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
  return std::max<int>(1, tasks);
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
  run.advice = !options.no_advice;
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
         fmt::format("exec {} merge {}/{{0..{}}} -o {}{}\n", quoted(run.program.string()),
                     quoted((run.folder / "parts").string()), run.tasks - 1, quoted(run.folder.string()),
                     run.advice ? "" : " --no-advice");
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
