#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "commands/commands.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "forecast/default_ranges.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "models/tables/tables.hpp"
#include "platforms/platform_table.hpp"
#include "report/text/display_text.hpp"
#include "report/text/narrow_tables.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/experiment/software_stack.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "scenarios/reader/sweep.hpp"
#include "sim/simgrid/platform_file.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// Prints texts of files, which must not move the cursor of a terminal. Tables are no wider than the
/// terminal.
template <class... Arguments>
void print_lines(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
  const std::string text =
      with_narrow_tables(fmt::format(form, std::forward<Arguments>(arguments)...), terminal_width());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    fmt::print("{}{}", without_controls(text.substr(begin, end - begin)), end < text.size() ? "\n" : "");
    begin = end + 1;
  }
}

void show_model(const std::string& name) {
  Library library;
  const YamlNode node = command_line_name(name);
  print_lines("{}", model_table(library.model(YamlValue(node, "model"))));
}

void show_trace(const std::string& name) {
  Library library;
  const YamlNode node = command_line_name(name);
  const Trace& trace = library.trace(YamlValue(node, "trace"));
  const YamlNode model = command_line_name(trace.model);
  const bool shipped = std::filesystem::exists(model_file(data_folder() / "models", trace.model));
  print_lines("{}", trace_table(trace, shipped ? &library.model(YamlValue(model, "model")) : nullptr));
}

void show_device(const std::string& name) {
  Library library;
  const YamlNode node = command_line_name(name);
  const Device& device = library.device(YamlValue(node, "device"));
  const bool rated = !device.rates.empty() || !device.efficiency_of.empty();
  print_lines("{}", device_table(device, rated ? &library.calibration(device) : nullptr));
}

/// The endpoint that a text such as "3", "host:2" or "storage" names.
int endpoint_of(const Platform& platform, const std::string& text) {
  if (text == "storage") return platform.storage_endpoint();
  const bool host = text.starts_with("host:");
  const auto index = parse_integer(std::string_view(text).substr(host ? 5 : 0));
  const int most = host ? platform.nodes : platform.devices();
  if (!index || *index < 0 || *index >= most) {
    throw InputError(fmt::format("route: expected a device from 0 to {}, host:NODE or storage, got \"{}\"",
                                 platform.devices() - 1, text));
  }
  return host ? platform.host_endpoint(*index) : (*index);
}

struct ShownPlatform {
  std::string name, output;
  std::vector<std::string> route;
  int nodes = 0;  ///< 0: as in the file
  bool simgrid = false;
};

Platform read_shown(const ShownPlatform& shown, Library& library) {
  const YamlNode name = command_line_name(shown.name);
  YamlNode tree = library.tree(YamlValue(name, "platform"), "platforms");
  for (auto& [key, value] : tree.entries) {
    if (key.text == "nodes" && shown.nodes > 0) value = command_line_name(std::to_string(shown.nodes));
  }
  return library.platform(YamlValue(tree, ""));
}

void show_for_simgrid(const ShownPlatform& shown, const Platform& platform) {
  const std::string text = simgrid_platform_file(platform);
  if (shown.output.empty()) return fmt::print("{}", text);
  const std::filesystem::path file = shown.output;
  check_writable(file.has_parent_path() ? file.parent_path() : ".");
  write_atomically(file, text);
}

void show_platform(const ShownPlatform& shown) {
  Library library;
  const Platform platform = read_shown(shown, library);
  if (shown.simgrid) return show_for_simgrid(shown, platform);
  if (const auto& route = shown.route; !route.empty()) {
    print_lines("{}",
                route_table(platform, endpoint_of(platform, route[0]), endpoint_of(platform, route[1])));
    return;
  }
  print_lines("{}", platform_table(platform));
  if (const std::string doubt = bandwidth_doubt(platform); !doubt.empty()) print_lines("note: {}\n", doubt);
  if (platform.devices() > 1) print_lines("\n{}", route_table(platform, 0, platform.devices() - 1));
}

/// Prints what intervals cover in addition to the assumptions: default ranges with the class of their source,
/// and the discrepancy term.
void show_default_ranges(const Scenario& scenario) {
  if (!scenario.uncertainty.on) {
    print_lines("\nuncertainty: none\n");
    return;
  }
  Library library;
  const auto ranges = default_ranges(scenario, largest_experiment(scenario, library), library);
  if (!ranges.empty()) print_lines("\ndefault ranges\n");
  for (const auto& [kind, source_class, range] : ranges) {
    print_lines("  {}: {}: {} ({}): {}\n", range.key, range_text(range), kind, source_class, range.why);
  }
  if (scenario.uncertainty.discrepancy)
    print_lines("\ndiscrepancy of the model: models/measured/discrepancy.yaml\n");
}

/// Prints the values that the software stack of a point sets, with their sources, or what the scenario gives
/// instead.
void show_stack(const SoftwareStack& stack, const YamlNode& document) {
  print_lines("\nlike {}: {}\n", stack.name, stack.what);
  for (const StackValue& one : stack.values) {
    const YamlNode* given = find_path(document, one.path);
    const std::string instead = given == nullptr ? "" : fmt::format(" (the scenario gives {})", given->text);
    const std::string where = one.without_nccl          ? ", if the platform does not name NCCL"
                              : one.without_peer_access ? ", if its devices do not reach each other's memory"
                                                        : "";
    print_lines("  {}: {}{}{}: {}\n", one.path, one.value.text, where, instead, one.source);
  }
}

/// Prints every software stack of the points once.
void show_stacks(const Scenario& scenario) {
  Library library;
  std::set<std::string> shown;
  for (const Point& point : scenario.points) {
    const YamlNode document = document_with(scenario.document, middle_values(scenario, point), library);
    const auto stack = software_stack_of(document, library);
    if (stack && shown.insert(stack->name).second) show_stack(*stack, document);
  }
}

void show_scenario(const std::string& file) {
  const Scenario scenario = read_scenario(file, {});
  check_keys(scenario.document);
  print_lines("{}: {}\n\n{} points\n", scenario.name, scenario.description, scenario.points.size());
  for (const Point& point : scenario.points) print_lines("  {}\n", point.name);
  if (!scenario.assumptions.empty()) print_lines("\nassumptions\n");
  for (const Assumption& one : scenario.assumptions) {
    print_lines("  {}: {}: {}\n", one.key, range_text(one), one.why);
  }
  show_stacks(scenario);
  show_default_ranges(scenario);
  if (!scenario.calibrations.empty()) print_lines("\ncalibrations\n");
  for (const Measurement& feed : scenario.calibrations) {
    print_lines("  {} so that {} is {} ({})\n", feed.range.key, feed.column, feed.value, feed.source);
  }
  if (!scenario.published.empty()) print_lines("\npublished figures\n");
  for (const Published& one : scenario.published) {
    const std::string over = one.over.empty() ? "" : " / " + point_name(one.over);
    const std::string value = one.kind == "trend" ? "" : fmt::format("{}", one.value);
    print_lines("  {} {}{} {} {}{}: {}\n", one.kind, point_name(one.point), over, one.column, one.relation,
                value.empty() || one.relation.empty() ? value : " " + value, one.source);
  }
}

void show_strategies() {
  for (const Strategy& strategy : strategies()) print_lines("{:<26}{}\n", strategy.kind, strategy.what);
  print_lines("\nKeys and defaults: stepcast show strategies KIND\n");
  print_lines("Costs and columns: docs/reference/strategies.md\n");
}

/// Prints the keys of one strategy, its source and an example.
void show_strategy(const std::string& kind) {
  const YamlNode node = command_line_name(kind);
  const Strategy& strategy = strategies().at(YamlValue(node, "strategies").one_of(strategy_names()));
  print_lines("{}: {}\nsource: {}\n\n", strategy.kind, strategy.what, strategy.source);
  Table table{{{"key", "", Align::left}, {"default", "", Align::left}, {"meaning", "", Align::left}}, {}};
  for (const Key& key : strategy.keys) {
    table.rows.push_back({std::string(key.name), std::string(key.default_value),
                          fmt::format("{} ({})", key.meaning, allowed_text(key.allowed))});
  }
  print_lines("{}\nexample, on {}: {}\n", to_string(table, terminal_width()), strategy.example_model,
              strategy.example);
}

void show_folder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator readable(data_folder() / folder, error);
  if (error) {
    throw InputError(fmt::format("{}: cannot read: {}", (data_folder() / folder).string(), error.message()));
  }
  for (const std::string& name : names_in(data_folder() / folder)) print_lines("{}\n", name);
}

/// Adds a subcommand that prints one item by name, or all names of the folder.
template <class Print>
void add_named(Command parent, const std::string& what, const std::string& folder, Print print) {
  const Command command =
      parent.add_subcommand(what, "Print a " + what + ", or without a name all names in " + folder + "/.");
  auto name = std::make_shared<std::string>();
  command.add_option("name", *name, "Name in " + folder + "/, or a path that ends in .yaml.");
  command.callback([=] { name->empty() ? show_folder(folder) : print(*name); });
  command.footer("Example: stepcast show " + what +
                 (what == "model"   ? " resnet50"
                  : what == "trace" ? " resnet50-b8-cpu"
                                    : " k20x"));
}

void add_show_platform(Command show) {
  const Command platform =
      show.add_subcommand("platform", "Print a platform, or without a name all names in platforms/.");
  auto shown = std::make_shared<ShownPlatform>();
  platform.add_option("name", shown->name, "Name in platforms/, or a path that ends in .yaml.");
  platform
      .add_option(
          "--route", shown->route,
          "Print only the route between two endpoints, each of the form DEVICE, host:NODE or storage. "
          "Default: the platform and the route from its first to its last device.")
      .values(2);
  platform.add_option("--nodes", shown->nodes, "Number of nodes instead of the file's.").range(1, 1 << 20);
  platform.add_flag(
      "--simgrid", shown->simgrid,
      "Print a platform file (XML) that the programs of SimGrid 3.32 load, such as smpirun, which runs MPI "
      "programs on it: hosts node0.device0, node0.cpu and storage, links such as node0.nic.0.up with their "
      "bandwidths and latencies, and the route of every two hosts. Overheads of messages are not in it.");
  platform
      .add_option("-o,--output", shown->output,
                  "With --simgrid: the file to write. Default: standard output.")
      .type_name("FILE.xml");
  platform.callback([=] {
    if (shown->name.empty() && !shown->route.empty())
      throw InputError("--route: expected a platform, such as show platform NAME --route 0 1");
    if (shown->name.empty() && shown->simgrid)
      throw InputError("--simgrid: expected a platform, such as show platform NAME --simgrid");
    if (shown->name.empty() && shown->nodes > 0)
      throw InputError("--nodes: expected a platform, such as show platform NAME --nodes 2");
    if (shown->simgrid && !shown->route.empty())
      throw InputError("--route: expected no --simgrid, whose file has all routes");
    if (!shown->output.empty() && !shown->simgrid) throw InputError("--output: expected --simgrid with it");
    shown->name.empty() ? show_folder("platforms") : show_platform(*shown);
  });
  platform.footer(
      "Examples: stepcast show platform dgx-a100 --route 0 8\n"
      "          stepcast show platform summit --nodes 2 --simgrid -o summit.xml\n"
      "          printf 'node0.device%d\\n' 0 1 2 3 >hosts; smpicc program.c -o program\n"
      "          smpirun -platform summit.xml -hostfile hosts -np 4 --cfg=network/model:CM02 "
      "--cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:1e15 ./program");
}

}  // namespace

void add_show(Command app) {
  const Command show =
      app.add_subcommand("show", "Print a model, trace, device, platform, scenario or the strategies.");
  show.require_subcommand();
  add_named(show, "model", "models", show_model);
  add_named(show, "trace", "models/traces", show_trace);
  add_named(show, "device", "models/devices", show_device);
  add_show_platform(show);
  const Command scenario = show.add_subcommand(
      "scenario",
      "Print the points, assumptions, calibrations and published figures of a scenario, or without one all "
      "names in scenarios/.");
  auto file = std::make_shared<std::string>();
  scenario.add_option("file", *file, "Scenario file, or a name in scenarios/.")
      .transform(scenario_file)
      .type_name("SCENARIO.yaml");
  scenario.callback([=] { file->empty() ? show_folder("scenarios") : show_scenario(*file); });
  scenario.footer("Example: stepcast show scenario quickstart");
  const Command strategies =
      show.add_subcommand("strategies", "Print all strategies, or the keys of one strategy.");
  auto kind = std::make_shared<std::string>();
  strategies.add_option("kind", *kind, "Strategy. Default: all strategies.");
  strategies.callback([=] { kind->empty() ? show_strategies() : show_strategy(*kind); });
  strategies.footer("Example: stepcast show strategies bmuf");
  show.footer("Example: stepcast show platform dgx-a100");
}

}  // namespace stepcast
