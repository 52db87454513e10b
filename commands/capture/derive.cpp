#include <fmt/format.h>

#include <optional>

#include "commands/commands.hpp"
#include "core/os/atomic_file.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/tables/tables.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

struct DeriveOptions {
  std::string model, device, noise, output;
  std::int64_t batch = 1;
};

void derive_to_file(const DeriveOptions& options) {
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

void add_derive(Command app) {
  const Command command = app.add_subcommand(
      "derive", "Estimate the trace of a model on a device that is not available, with a roofline model.");
  auto options = std::make_shared<DeriveOptions>();
  command.add_option("--model", options->model, "Name in models/, or a path that ends in .yaml.").required();
  command.add_option("--batch", options->batch, "Batch size: samples per step.").required().range(1, 1 << 20);
  command.add_option("--device", options->device, "Name in models/devices/, or a path that ends in .yaml.")
      .required();
  command
      .add_option("--noise", options->noise,
                  "Captured trace whose relative variation between steps is applied to the derived times. "
                  "Default: no variation.")
      .type_name("FILE");
  command.add_option("-o,--output", options->output, "Trace file. Default: MODEL-bBATCH-DEVICE.yaml.")
      .type_name("FILE");
  command.footer(
      "Example: stepcast derive --model resnet50 --batch 32 --device k80 -o resnet50-b32-k80.yaml\n"
      "The model and its errors: docs/explanation/derived-traces.md");
  command.callback([options] { derive_to_file(*options); });
}

}  // namespace stepcast
