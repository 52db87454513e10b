#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/cost.hpp"
#include "models/table.hpp"
#include "models/trace_times.hpp"

namespace stepcast {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  return sorted.at(static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1))));
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
  return fmt::format("{:.1f}", static_cast<double>(batch) * work / time / 1e9);
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
  text += fmt::format("sum of layers    {:.6g} ms a step, {:.6g} samples/s\n", step * 1e3,
                      static_cast<double>(trace.batch) / step);
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

}  // namespace stepcast
