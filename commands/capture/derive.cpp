#include <fmt/format.h>

#include <memory>
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
  std::string precision = "f32", attention = "eager", gelu = "fused", optimizer = "momentum",
              update = "foreach", layout = "nchw";
  std::int64_t batch = 1;

  KernelChoice choice() const {
    const YamlNode kernels = parse_yaml(
        fmt::format("{{precision: {}, attention: {}, gelu: {}, optimizer: {}, update: {}, layout: {}}}",
                    precision, attention, gelu, optimizer, update, layout),
        "command line");
    return read_kernel_choice(YamlValue(kernels, "kernels"));
  }
};

void derive_to_file(const DeriveOptions& options) {
  Library library;
  const YamlNode name = command_line_name(options.model);
  const Model& model = library.model(YamlValue(name, "--model"));
  const Device device = with_kernels(library.device(options.device), options.choice());
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
  command
      .add_option("--precision", options->precision,
                  "Precision of products. The device file lists those it has.")
      .one_of(precision_names())
      .show_default();
  command
      .add_option(
          "--attention", options->attention,
          "Kernels of attention: one for each operation; scale, mask and softmax in one; or one that keeps "
          "the scores on the chip.")
      .one_of(attention_names())
      .show_default();
  command.add_option("--gelu", options->gelu, "GELU in one kernel, or its tanh form written out.")
      .one_of(gelu_names())
      .show_default();
  command.add_option("--optimizer", options->optimizer, "Optimizer of the update.")
      .one_of(optimizer_names())
      .show_default();
  command
      .add_option(
          "--update", options->update,
          "Kernels of the optimizer: one for each operation; one for each operation and tensor; or one for "
          "all operations.")
      .one_of(update_names())
      .show_default();
  command.add_option("--layout", options->layout, "Layout of activations: channels first or last.")
      .one_of(layout_names())
      .show_default();
  command.add_option("-o,--output", options->output, "Trace file. Default: MODEL-bBATCH-DEVICE.yaml.")
      .type_name("FILE");
  command.footer(
      "Example: stepcast derive --model resnet50 --batch 32 --device k80 -o resnet50-b32-k80.yaml\n"
      "The model and its errors: docs/explanation/derived-traces.md");
  command.callback([options] { derive_to_file(*options); });
}

}  // namespace stepcast
