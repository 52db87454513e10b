#include <fmt/format.h>

#include "commands/commands.hpp"
#include "commands/run/finish.hpp"
#include "commands/run/shards.hpp"
#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "core/os/folder_lock.hpp"
#include "forecast/processes/process_pool.hpp"

namespace stepcast {
namespace {

struct MergeOptions {
  std::vector<std::string> folders;
  std::string output, scenario;
};

std::vector<ShardRun> read_shards(const std::vector<std::string>& folders) {
  std::vector<ShardRun> shards;
  for (const std::string& folder : folders) shards.push_back(read_shard_folder(folder));
  check_same_run(shards);
  return shards;
}

void merge(const MergeOptions& options) {
  const SignalGuard guard;
  const std::vector<ShardRun> shards = read_shards(options.folders);
  const ShardRun& first = shards.front();
  std::vector<Assignment> settings;
  for (const std::string& text : first.settings) settings.push_back(parse_assignment(text));
  Scenario scenario = read_scenario(options.scenario.empty() ? first.scenario : options.scenario, settings);
  for (const std::string& line : leave_out_lost_figures(scenario)) fmt::print("{}\n", line);

  Library library;
  const CheckedPoints checked = checked_points(scenario, all_points(scenario), library);
  const PreparedRun prepared = prepared_run(scenario, checked.largest, first.draws, library);
  Manifest manifest = manifest_of(prepared.scenario, library, first.settings);
  manifest.seed = checked.largest.seed;
  for (const ShardRun& shard : shards) check_same_inputs(shard, manifest);
  std::vector<std::filesystem::path> journals;
  for (const ShardRun& shard : shards) journals.push_back(shard.folder / "simulations.jsonl");
  const ForecastOptions wanted{
      .draws = prepared.draws,
      .points = all_points(scenario),
      .failed = checked.failed,
      .journal = {},
      .what_if = !first.results_only,
      .inspect = published_check(scenario),
  };
  Simulations all = collected(prepared.scenario, merged_journals(journals), wanted);
  const std::filesystem::path folder = options.output.empty() ? "results/" + scenario.name : options.output;
  check_writable(folder);
  const FolderLock lock(folder);
  const std::size_t failed = all.failed.size();
  const FinishedRun run{prepared, checked, std::move(manifest), folder, first.settings, !first.results_only};
  const FinishedOutputs finished = finish_run(run, library, std::move(all));
  print_published(finished.published);
  finished.missing.report(folder, "free some space and merge again");
  fmt::print("written: {}\n", folder.string());
  report_failed_points(failed);
}

}  // namespace

void add_merge(Command app) {
  const Command command = app.add_subcommand(
      "merge", "Put the shards of a run together: the results are those of a run of all points.");
  auto options = std::make_shared<MergeOptions>();
  command.add_option("folder", options->folders, "The results folders of all shards (run --shard).")
      .required()
      .type_name("DIR");
  command
      .add_option("-o,--output", options->output, "Folder for the results. Default: results/SCENARIO-NAME.")
      .type_name("DIR");
  command
      .add_option("--scenario", options->scenario,
                  "The scenario's file, if it is not where the shards found it.")
      .type_name("FILE");
  command.callback([options] { merge(*options); }, Command::Json::yes);
  command.footer(
      "Example: stepcast run scenarios/quickstart.yaml --shard 0/2 -o /tmp/part0\n"
      "         stepcast run scenarios/quickstart.yaml --shard 1/2 -o /tmp/part1\n"
      "         stepcast merge /tmp/part0 /tmp/part1 -o /tmp/quick");
}

}  // namespace stepcast
