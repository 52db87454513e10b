#include "models/tables/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/cost/cost.hpp"
#include "models/cost/memory.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/layer.hpp"
#include "models/work/model_flops.hpp"

namespace stepcast {
namespace {

std::string parameters_of(const Layer& layer) {
  std::int64_t sum = 0;
  for (const ParameterTensor& tensor : layer.parameters) sum += tensor.trainable ? tensor.elements() : 0;
  return sum == 0 ? "" : fmt::format("{}", sum);
}

std::string giga(double flops) {
  return flops == 0 ? "" : fmt::format("{:.4g}", flops / 1e9);
}

std::string megabytes(double bytes) {
  return fmt::format("{:.4g}", bytes / 1e6);
}

/// Size and name of a unit in which the parts of the total can be distinguished.
std::pair<double, const char*> unit_of(Bytes total) {
  if (total.value >= 1e8) return {1e9, "GB"};
  return total.value >= 1e5 ? std::pair{1e6, "MB"} : std::pair{1e3, "kB"};
}

double backward(const LayerCost& cost) {
  return (cost.backward_data.flops + cost.backward_weights.flops).value;
}

std::string row(const Layer& layer, const LayerCost& cost, std::size_t width) {
  return fmt::format("{:{}}  {:21}  {:>18}  {:>12}  {:>9}  {:>9}  {:>10}\n", layer.name, width,
                     to_string(layer.kind), to_string(layer.output), parameters_of(layer),
                     giga(cost.forward.flops.value), giga(backward(cost)),
                     megabytes(kFp32Bytes * elements(layer.output)));
}

std::string totals(const Model& model) {
  double outputs = 0;
  for (const Layer& layer : model.layers) outputs += elements(layer.output);
  const Flops forward = forward_flops(model);
  return fmt::format(
      "parameters       {} trainable in {} tensors, {} with those that are not trained\n"
      "work a sample    {:.6g} GFLOP forward, {:.6g} forward and backward (convolutions, dense, recurrent, "
      "attention)\n"
      "outputs          {} MB a sample\n",
      trainable_parameters(model), gradient_tensors(model), all_parameters(model), forward.value / 1e9,
      training_flops(model).value / 1e9, megabytes(kFp32Bytes * outputs));
}

std::string memory_lines(const Model& model) {
  if (!knows_sizes(model)) return "memory           not known, because the sizes of its outputs are not\n";
  MemoryOptions pytorch;
  pytorch.framework = MemoryOptions::Framework::pytorch;
  pytorch.activations = MemoryOptions::Activations::in_place;
  const Memory all = training_memory(model, pytorch);
  const auto [unit, name] = unit_of(all.total());
  const auto in_unit = [unit = unit](Bytes bytes) { return bytes.value / unit; };
  return fmt::format(
      "memory, batch 1  {:.3f} {} in PyTorch: weights {:.3f}, gradients {:.3f}, momentum {:.3f}, activations "
      "{:.3f}, error signals {:.3f}, input {:.3f}, workspace {:.3f}, allocator {:.3f}\n"
      "                 {:.3f} {} by LBANN's rule\n",
      in_unit(all.total()), name, in_unit(all.weights), in_unit(all.gradients), in_unit(all.optimizer_state),
      in_unit(all.activations), in_unit(all.error_signals), in_unit(all.input), in_unit(all.workspace),
      in_unit(all.allocator), in_unit(training_memory(model, {}).total()), name);
}

}  // namespace

std::string model_table(const Model& model) {
  std::size_t width = 5;
  for (const Layer& layer : model.layers) width = std::max(width, layer.name.size());
  std::string text = fmt::format("{}: one sample is one {}, input {}\n{}\n\n", model.name, model.sample,
                                 to_string(model.input), model.source);
  text += fmt::format("{:{}}  {:21}  {:>18}  {:>12}  {:>9}  {:>9}  {:>10}\n", "layer", width, "kind",
                      "output", "parameters", "fwd GFLOP", "bwd GFLOP", "output MB");
  const std::vector<LayerCost> costs = layer_costs(model);
  for (std::size_t i = 0; i < costs.size(); ++i) text += row(model.layers[i], costs[i], width);
  return text + "\n" + totals(model) + memory_lines(model);
}

namespace {

double percentile(const std::vector<double>& sorted, double share) {
  return sorted.at(std::lround(share * (sorted.size() - 1)));
}

std::string spread(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const double middle = median(samples).value;
  if (samples.size() < 2 || !(middle > 0)) return "";
  return fmt::format("{:.0f}%", 100 * (percentile(samples, 0.9) - percentile(samples, 0.1)) / middle);
}

std::string cell(const PassSamples& pass) {
  if (pass.seconds.empty()) return fmt::format("{:>10} {:>5}", "", "");
  return fmt::format("{:>10.4g} {:>5}", median(pass.seconds).value * 1e3, spread(pass.seconds));
}

double layer_seconds(const LayerTrace& layer) {
  double sum = 0;
  for (const PassSamples* pass : passes(layer)) sum += median(pass->seconds).value;
  return sum;
}

std::string work_rate(const LayerCost& cost, const LayerTrace& layer, std::int64_t batch) {
  const double work = (cost.forward.flops + cost.backward_data.flops + cost.backward_weights.flops).value;
  const double time = layer_seconds(layer) - median(layer.update.seconds).value;
  if (work == 0 || !(time > 0)) return "";
  return fmt::format("{:.1f}", batch * work / time / 1e9);
}

std::string origin(const Trace& trace) {
  std::string text = fmt::format("{}: {} trace of {}, batch {}, {}, {} on {}, {} thread{}\n", trace.name,
                                 trace.kind == Trace::Kind::captured ? "captured" : "derived", trace.model,
                                 trace.batch, trace.precision, trace.library.empty() ? "rule" : trace.library,
                                 trace.device, trace.threads, trace.threads == 1 ? "" : "s");
  for (const std::string* line : {&trace.date, &trace.command, &trace.source}) {
    if (!line->empty()) text += *line + "\n";
  }
  return text;
}

std::string totals(const Trace& trace, std::size_t width) {
  std::array<double, 4> sums{};
  for (const LayerTrace& layer : trace.layers) {
    const auto all = passes(layer);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += median(all[i]->seconds).value * 1e3;
  }
  const double step = step_time(trace).value;
  std::string text = fmt::format("{:{}} {:>10.4g} {:5} {:>10.4g} {:5} {:>10.4g} {:5} {:>10.4g}\n\n", "sum",
                                 width, sums[0], "", sums[1], "", sums[2], "", sums[3]);
  text +=
      fmt::format("sum of layers    {:.6g} ms a step, {:.6g} samples/s\n", step * 1e3, trace.batch / step);
  if (!trace.step_seconds.empty()) {
    const double whole = median(trace.step_seconds).value;
    text += fmt::format("untimed steps    {:.6g} ms, {} of them; the layers sum to {:+.2f} % of that\n",
                        whole * 1e3, trace.step_seconds.size(), 100 * (step / whole - 1));
  }
  if (!trace.graph_step_seconds.empty()) {
    text += fmt::format("as a CUDA graph  {:.6g} ms, {} of them\n",
                        median(trace.graph_step_seconds).value * 1e3, trace.graph_step_seconds.size());
  }
  return text;
}

}  // namespace

std::string trace_table(const Trace& trace, const Model* model) {
  if (model != nullptr) check_fits(trace, *model);
  std::size_t width = 5;
  for (const LayerTrace& layer : trace.layers) width = std::max(width, layer.name.size());
  const std::vector<LayerCost> costs = model != nullptr ? layer_costs(*model) : std::vector<LayerCost>{};
  std::string text = origin(trace) + "\n";
  text += fmt::format("{:{}} {:>16} {:>16} {:>16} {:>16}{}\n", "layer", width, "forward ms", "bwd data ms",
                      "bwd weights ms", "update ms", model != nullptr ? "    GFLOP/s" : "");
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const LayerTrace& layer = trace.layers[i];
    text += fmt::format("{:{}}", layer.name, width);
    for (const PassSamples* pass : passes(layer)) text += " " + cell(*pass);
    if (model != nullptr) text += fmt::format(" {:>10}", work_rate(costs[i], layer, trace.batch));
    text += "\n";
  }
  text += totals(trace, width);
  for (const std::string& flag : trace.flags) text += fmt::format("flag             {}\n", flag);
  for (const std::string& note : trace.notes) text += fmt::format("note             {}\n", note);
  return text;
}

namespace {

std::string rate_row(const DeviceRate& rate, const RateError* rule) {
  std::string text = fmt::format("{:20} {:>7} {:>12.6g}", rate.model, rate.batch, rate.samples_per_second);
  if (rule != nullptr) text += fmt::format(" {:>12.4g} {:>10}", rule->predicted, error_text(*rule));
  return text +
         fmt::format("  {:9}  {}\n", rate.use == DeviceRate::Use::check ? "check" : "calibrate", rate.source);
}

std::string efficiency_line(const Device& device, const Calibration& calibration) {
  if (device.kernels) {
    return fmt::format(
        "kernels           {:.2f} of the bandwidth when streaming, {:.2f} of the peak in dense layers\n",
        device.kernels->streaming, device.kernels->dense);
  }
  return fmt::format("efficiency        {:.3f}, {}\n", calibration.efficiency,
                     calibration.fitted_on == device.name
                         ? "fitted on the rates below"
                         : "assumed equal to that of " + calibration.fitted_on);
}

}  // namespace

std::string device_table(const Device& device, const Calibration* calibration) {
  std::string tensor_cores;
  for (const auto& [precision, kernels] : device.precisions) {
    static const std::map<KernelChoice::Precision, const char*> names{{KernelChoice::Precision::tf32, "TF32"},
                                                                      {KernelChoice::Precision::f16, "fp16"},
                                                                      {KernelChoice::Precision::bf16, "bf16"},
                                                                      {KernelChoice::Precision::fp8, "fp8"}};
    const auto half = device.precisions.find(KernelChoice::Precision::f16);
    if (precision == KernelChoice::Precision::bf16 && half != device.precisions.end() &&
        half->second.peak.value == kernels.peak.value)
      continue;
    tensor_cores += fmt::format(", {:.4g} Tflop/s {}", kernels.peak.value / 1e12, names.at(precision));
  }
  std::string text = fmt::format(
      "{}\n"
      "peak              {:.4g} Tflop/s fp32{}\n"
      "memory bandwidth  {:.4g} GB/s\n"
      "memory            {:.4g} GiB, {:.4g} GiB usable\n"
      "launch overhead   {:.3g} us\n",
      device.name, device.peak.value / 1e12, tensor_cores, device.memory_bandwidth.value / 1e9,
      device.memory.value / 0x1p30, device.usable_memory.value / 0x1p30, device.launch_overhead.value * 1e6);
  if (!device.kernels_of.empty())
    text += fmt::format("kernels           shares of {}{}\n", device.kernels_of,
                        device.kernels_assumed ? ", assumed" : "");
  if (calibration != nullptr) text += efficiency_line(device, *calibration);
  if (device.rates.empty()) return text;
  const bool ruled = calibration != nullptr && calibration->fitted_on == device.name;
  text += fmt::format("\n{:20} {:>7} {:>12}{}  {:9}  {}\n", "published rates", "batch", "samples/s",
                      ruled ? fmt::format(" {:>12} {:>10}", "rule", "error") : "", "use", "source");
  for (std::size_t i = 0; i < device.rates.size(); ++i) {
    text += rate_row(device.rates[i], ruled ? &calibration->errors.at(i) : nullptr);
  }
  return text;
}

}  // namespace stepcast
