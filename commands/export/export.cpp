#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "commands/commands.hpp"
#include "commands/export/chakra_files.hpp"
#include "commands/run/timeline.hpp"
#include "commands/scenario_options.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "forecast/simulate_point.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "scenarios/reader/sweep.hpp"
#include "sim/simulation.hpp"

namespace stepcast {
namespace {

struct ExportOptions {
  std::string scenario, point, folder;
  std::vector<std::string> settings;
  bool chakra = false;
};

const Point& exported_point(const Scenario& scenario, const ExportOptions& options) {
  if (options.point.empty() && scenario.points.size() > 1)
    throw InputError(fmt::format("--point: expected one of the {} points of {}, such as \"{}\"",
                                 scenario.points.size(), scenario.name, scenario.points.back().name));
  return scenario.points[options.point.empty() ? 0 : point_of(scenario, "--point", options.point)];
}

/// What the traces leave out, where that makes a difference.
void print_losses(const Scenario& scenario, const Experiment& experiment) {
  if (!experiment.noise.is_none()) fmt::print("left out: noise; all equal ranks take the median times\n");
  if (!scenario.calibrations.empty())
    fmt::print("left out: calibrate; its keys are in the middle of their ranges\n");
  if (experiment.plan.compute_slowdown > 1 || experiment.plan.message_slowdown > 1)
    fmt::print("left out: that compute is slower while a collective or a message runs\n");
  if (experiment.plan.asynchronous)
    fmt::print(
        "note: who answers whom, and when, is as in this simulation; another network would change it\n");
}

void export_chakra(const ExportOptions& options) {
  if (!options.chakra) throw InputError("expected a format: --chakra");
  const Scenario scenario = read_scenario(options.scenario, parse_assignments(options.settings));
  Library library;
  Experiment experiment = build_experiment(
      scenario.document, middle_values(scenario, exported_point(scenario, options)), library);
  const std::filesystem::path folder = options.folder.empty() ? results_folder("", scenario.name) / "chakra"
                                                              : std::filesystem::path(options.folder);
  check_writable(folder);
  print_losses(scenario, experiment);
  experiment.noise = {};
  Simulation simulation = simulation_of(experiment);
  simulation.logs_programs = true;
  const SimulationResult result = simulate(simulation);
  const ChakraFiles files = write_chakra_files(folder, scenario.name, experiment.plan, result.programs);
  fmt::print("{} ranks, {} nodes, {} groups of ranks; {} steps take {:.4g} s here\n", files.ranks,
             files.nodes, files.groups, experiment.plan.steps, result.seconds);
  if (files.messages_of_collectives > 0)
    fmt::print("{} nodes are messages of collectives that ASTRA-sim does not simulate\n",
               files.messages_of_collectives);
  const std::string groups = files.groups > 0 ? (folder / "comm_group.json").string() : "empty";
  fmt::print("for ASTRA-sim: --workload-configuration={} --comm-group-configuration={}\nwritten: {}\n",
             (folder / scenario.name).string(), groups, folder.string());
}

}  // namespace

void add_export(Command app) {
  const Command command =
      app.add_subcommand("export", "Write what the ranks of a forecast do as traces for other simulators.");
  auto options = std::make_shared<ExportOptions>();
  command
      .add_option("scenario", options->scenario,
                  "Scenario file, or a name in scenarios/; - reads standard input.")
      .required()
      .transform(scenario_file)
      .type_name("SCENARIO.yaml");
  command.add_flag("--chakra", options->chakra,
                   "Write Chakra execution traces, one file a rank, as ASTRA-sim reads them.");
  command
      .add_option("--point", options->point,
                  "Point of the sweep, such as \"workers=64\". Needed if there are several.")
      .type_name("POINT");
  add_settings(command, options->settings);
  add_results_folder(command, options->folder,
                     "Folder for the traces. Default: results/SCENARIO-NAME/chakra.");
  command.footer("Example: stepcast export --chakra quickstart --point workers=8 -o traces");
  command.callback([=] { export_chakra(*options); });
}

}  // namespace stepcast
