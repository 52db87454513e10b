#include "gpu/capture/selection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/loader.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "scenarios/reader/library.hpp"
#include "validate/launch/real_run_options.hpp"

namespace stepcast {

GpuOptions DeviceOptions::gpu_options() const {
  const auto place = std::find(kPrecisions.begin(), kPrecisions.end(), precision) - kPrecisions.begin();
  return {.device = device_number(device),
          .precision = static_cast<GpuPrecision>(place),
          .layout = layout == "nhwc" ? ImageLayout::nhwc : ImageLayout::nchw,
          .workspace = static_cast<std::size_t>(workspace_mib) << 20,
          .fuses = !no_fusion,
          .graphs = graphs};
}

std::string DeviceOptions::command_line() const {
  return fmt::format(" --device {} --precision {} --layout {} --workspace {}{}{}", device, precision, layout,
                     workspace_mib, no_fusion ? " --no-fusion" : "", graphs ? " --graphs" : "");
}

void add_device_options(Command command, DeviceOptions& options) {
  add_gpu_options(command, options, "GPU: cuda:NUMBER.");
}

std::string device_file_of(const std::string& gpu) {
  const std::string name = device_reported_as(data_folder() / "models", gpu);
  if (!name.empty()) return name;
  throw InputError(fmt::format(
      "models/devices has no file for {}: add one, or name the most similar device with --device-file NAME",
      gpu));
}

Model model_of(const std::string& name) {
  const YamlNode typed = command_line_name(name);
  const YamlNode tree = read_yaml(data_file(YamlValue(typed, "--model"), "models"));
  return read_model(YamlValue(tree, ""));
}

namespace {

/// True for a network with a kind of layer that only processors compute.
bool needs_processor(const Model& model) {
  return has_layers(model, LayerKind::locally_connected);
}

}  // namespace

std::vector<std::string> models_for_gpu(std::vector<std::string>& left_out) {
  std::vector<std::string> names, usable;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "models")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (needs_processor(model_of(name)))
      left_out.push_back(fmt::format("{}: left out: kind locally_connected is not supported on GPUs", name));
    else
      usable.push_back(name);
  }
  return usable;
}

std::string trace_name(const std::string& model, std::int64_t batch, const std::string& precision,
                       const std::string& layout) {
  return fmt::format("{}-b{}-{}-{}-gpu", model, batch, precision, layout);
}

namespace {

bool uses_mpi(const Plan& plan) {
  return std::ranges::any_of(
      plan.communicators, [](const Communicator& one) { return one.all_reduce.algorithm == Algorithm::mpi; });
}

}  // namespace

std::string unsupported_on_gpus(const Experiment& experiment, int ranks) {
  if (uses_mpi(experiment.plan))
    return "all_reduce: mpi is not supported on GPUs: their ranks do not use MPI";
  if (needs_processor(experiment.model)) return "kind locally_connected is not supported on GPUs";
  if (experiment.plan.partition.tokens.any())
    return "sequence_parallel and mesh.context are not supported on GPUs";
  const std::string why = unsupported_in_real_run(experiment.plan, ranks, false);
  return why.empty() && experiment.learning ? unsupported_real_learning(experiment) : why;
}

}  // namespace stepcast
