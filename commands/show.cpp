#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "commands/commands.hpp"
#include "core/error.hpp"
#include "core/parse_number.hpp"
#include "models/table.hpp"
#include "models/trace_times.hpp"
#include "platforms/table.hpp"
#include "report/human.hpp"
#include "scenarios/check_keys.hpp"
#include "scenarios/data_files.hpp"
#include "scenarios/experiment.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/sweep.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {
namespace {

void show_model(const std::string& name) {
  Library library;
  const YamlNode node = command_line_name(name);
  fmt::print("{}", model_table(library.model(YamlValue(node, "model"))));
}

void show_trace(const std::string& name) {
  Library library;
  const YamlNode node = command_line_name(name);
  const Trace& trace = library.trace(YamlValue(node, "trace"));
  const YamlNode model = command_line_name(trace.model);
  const bool shipped = std::filesystem::exists(data_folder() / "models" / (trace.model + ".yaml"));
  fmt::print("{}", trace_table(trace, shipped ? &library.model(YamlValue(model, "model")) : nullptr));
}

void show_device(const std::string& name) {
  Library library;
  const YamlNode node = command_line_name(name);
  const Device& device = library.device(YamlValue(node, "device"));
  const bool rated = !device.rates.empty() || !device.efficiency_of.empty();
  fmt::print("{}", device_table(device, rated ? &library.calibration(device) : nullptr));
}

/// "3" or "host:2" or "storage".
int endpoint_of(const Platform& platform, const std::string& text) {
  if (text == "storage") return platform.storage_endpoint();
  const bool host = text.starts_with("host:");
  const auto index = parse_integer(std::string_view(text).substr(host ? 5 : 0));
  const int most = host ? platform.nodes : platform.devices();
  if (!index || *index < 0 || *index >= most) {
    throw InputError(fmt::format("route: expected a device from 0 to {}, host:NODE or storage, got \"{}\"",
                                 platform.devices() - 1, text));
  }
  return host ? platform.host_endpoint(static_cast<int>(*index)) : static_cast<int>(*index);
}

void show_platform(const std::string& name, const std::vector<std::string>& route) {
  Library library;
  const YamlNode node = command_line_name(name);
  const Platform platform =
      read_platform(YamlValue(library.tree(YamlValue(node, "platform"), "platforms"), ""));
  if (!route.empty()) {
    fmt::print("{}", route_table(platform, endpoint_of(platform, route[0]), endpoint_of(platform, route[1])));
    return;
  }
  fmt::print("{}", platform_table(platform));
  if (platform.devices() > 1) fmt::print("\n{}", route_table(platform, 0, platform.devices() - 1));
}

void show_scenario(const std::string& file) {
  const Scenario scenario = read_scenario(file, {});
  check_keys(scenario.document);
  fmt::print("{}: {}\n\n{} points\n", scenario.name, scenario.description, scenario.points.size());
  for (const Point& point : scenario.points) fmt::print("  {}\n", point.name);
  if (!scenario.assumptions.empty()) fmt::print("\nassumed\n");
  for (const Assumption& one : scenario.assumptions) {
    fmt::print("  {}: {}{} to {}{}{}: {}\n", one.key, one.low, one.unit, one.high, one.unit,
               one.logarithmic ? ", log-uniform" : "", one.why);
  }
  if (!scenario.calibrations.empty()) fmt::print("\ncalibrated\n");
  for (const Feed& feed : scenario.calibrations) {
    fmt::print("  {} so that {} is {} ({})\n", feed.range.key, feed.column, feed.value, feed.source);
  }
  if (!scenario.published.empty()) fmt::print("\npublished\n");
  for (const Published& one : scenario.published) {
    const std::string over = one.over.empty() ? "" : " / " + point_name(one.over);
    const std::string value = one.kind == "trend" ? "" : fmt::format("{}", one.value);
    fmt::print("  {} {}{} {} {}{}: {}\n", one.kind, point_name(one.point), over, one.column, one.relation,
               value.empty() || one.relation.empty() ? value : " " + value, one.source);
  }
}

void show_strategies() {
  for (const Strategy& strategy : strategies()) fmt::print("{:<26}{}\n", strategy.kind, strategy.what);
  fmt::print("\noptions, costs and sources: docs/strategies.md\n");
}

void show_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::directory_iterator entries(data_folder() / folder, error);
  if (error) {
    throw InputError(fmt::format("{}: cannot read: {}", (data_folder() / folder).string(), error.message()));
  }
  for (const auto& entry : entries) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) fmt::print("{}\n", name);
}

/// A subcommand that prints one thing by name, or the names that there are.
template <class Print>
void add_named(CLI::App& parent, const std::string& what, const std::string& folder, Print print) {
  auto* command =
      parent.add_subcommand(what, "Print a " + what + " of " + folder + "/; without a name, the names");
  auto name = std::make_shared<std::string>();
  command->add_option("name", *name, "a name in " + folder + "/ or a path ending in .yaml");
  command->callback([=] { name->empty() ? show_folder(folder) : print(*name); });
}

}  // namespace

void add_show(CLI::App& app) {
  auto* show =
      app.add_subcommand("show", "Print a model, trace, device, platform, scenario or the strategies");
  show->require_subcommand(1);
  add_named(*show, "model", "models", show_model);
  add_named(*show, "trace", "models/traces", show_trace);
  add_named(*show, "device", "models/devices", show_device);
  auto* platform =
      show->add_subcommand("platform", "Print a platform, or the route between two of its devices");
  auto name = std::make_shared<std::string>();
  auto route = std::make_shared<std::vector<std::string>>();
  platform->add_option("name", *name, "a name in platforms/ or a path ending in .yaml");
  platform
      ->add_option("--route", *route,
                   "two endpoints: DEVICE, host:NODE or storage; else the first and the last device")
      ->expected(2);
  platform->callback([=] {
    if (name->empty() && !route->empty()) throw InputError("--route: of which platform? give its name");
    name->empty() ? show_folder("platforms") : show_platform(*name, *route);
  });
  auto* scenario = show->add_subcommand("scenario", "Print what a scenario sweeps, assumes and compares");
  auto file = std::make_shared<std::string>();
  scenario->add_option("file", *file, "a scenario file")->required()->type_name("SCENARIO.yaml");
  scenario->callback([=] { show_scenario(*file); });
  show->add_subcommand("strategies", "Print the strategies that a scenario can name")
      ->callback(show_strategies);
}

}  // namespace stepcast
