#include "models/derive.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "commands/commands.hpp"
#include "models/table.hpp"
#include "models/trace_text.hpp"
#include "report/atomic_file.hpp"
#include "scenarios/data_files.hpp"
#include "scenarios/library.hpp"

namespace stepcast {
namespace {

struct Options {
  std::string model, device, noise, output;
  std::int64_t batch = 1;
};

void derive_to_file(const Options& options) {
  Library library;
  const YamlNode name = command_line_name(options.model);
  const Model& model = library.model(YamlValue(name, "--model"));
  const Device& device = library.device(options.device);
  std::optional<Trace> captured;
  if (!options.noise.empty()) captured = read_trace(YamlValue(read_yaml(options.noise), ""));
  Trace trace =
      derive(model, options.batch, device, library.calibration(device), {captured ? &*captured : nullptr, 8});
  const std::filesystem::path file =
      options.output.empty() ? fmt::format("{}-b{}-{}.yaml", model.name, options.batch, device.name)
                             : options.output;
  trace.name = file.stem().string();
  check_writable(file.has_parent_path() ? file.parent_path() : ".");
  write_atomically(file, to_yaml(trace));
  fmt::print("{}written: {}\n", trace_table(trace, &model), file.string());
}

}  // namespace

void add_derive(CLI::App& app) {
  auto* command =
      app.add_subcommand("derive", "Carry a model over to a device that is not at hand, by a roofline rule");
  auto options = std::make_shared<Options>();
  command->add_option("--model", options->model, "a name in models/ or a path ending in .yaml")->required();
  command->add_option("--batch", options->batch, "samples a step")->required()->check(CLI::Range(1, 1 << 20));
  command->add_option("--device", options->device, "a name in models/devices/ or a path ending in .yaml")
      ->required();
  command->add_option("--noise", options->noise, "captured trace whose relative noise is carried over")
      ->type_name("FILE");
  command->add_option("-o,--output", options->output, "trace file (default MODEL-bBATCH-DEVICE.yaml)")
      ->type_name("FILE");
  command->footer("The rule and its errors: docs/derived-traces.md");
  command->callback([options] { derive_to_file(*options); });
}

}  // namespace stepcast
