#include "models/partition/pipeline_stages.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

#include "models/network/layer.hpp"

namespace stepcast {
namespace {

/// best[k][i]: the time of the slowest of k stages over the first i layers, and the first layer of the last
/// stage.
struct Choice {
  double slowest = std::numeric_limits<double>::infinity();
  int begin = 0;
};

/// The best begin of a last stage that ends before layer `last`; the first one if several are best. `before`:
/// the choices for one stage less, `least`: the number of those stages. The last stage takes less time the
/// later it begins, and the stages before it take more, so the best begin is where the two cross.
Choice best_last_stage(const std::vector<double>& sums, const std::vector<Choice>& before, int least,
                       int last) {
  const auto own = [&](int begin) { return sums[last] - sums[begin]; };
  const auto slowest_before = [&](int begin) { return before[begin].slowest; };
  int crossing = least, end = last - 1;
  while (crossing < end) {
    const int middle = crossing + (end - crossing) / 2;
    if (slowest_before(middle) >= own(middle))
      end = middle;
    else
      crossing = middle + 1;
  }
  const Choice later{std::max(own(crossing), slowest_before(crossing)), crossing};
  if (crossing == least || own(crossing - 1) > later.slowest) return later;
  int begin = crossing - 1;
  while (begin > least && own(begin - 1) == own(begin)) --begin;  // layers without time
  return {own(begin), begin};
}

std::vector<std::vector<Choice>> best_divisions(const std::vector<double>& sums, int stages) {
  const int layers = sums.size() - 1;
  std::vector<std::vector<Choice>> best(stages + 1, std::vector<Choice>(sums.size()));
  best[0][0].slowest = 0;
  for (int stage = 1; stage <= stages; ++stage) {
    const auto& before = best[stage - 1];
    for (int last = stage; last <= layers; ++last)
      best[stage][last] = best_last_stage(sums, before, stage - 1, last);
  }
  return best;
}

std::set<int> boundary_layers(const Model& model, int first) {
  std::set<int> sources;
  for (std::size_t i = first; i < model.layers.size(); ++i) {
    for (const int input : model.layers[i].inputs) {
      if (input < first) sources.insert(input);
    }
  }
  return sources;
}

/// A stage has a copy of a tied weight whose owner is in another stage.
void untie(const Model& model, int first, Layer& layer) {
  if (layer.weight_of < 0) return;
  const int owner = layer.weight_of;
  layer.weight_of = owner < first ? -1 : owner - first;
  if (owner < first)
    layer.parameters.insert(layer.parameters.begin(), model.layers[owner].parameters.front());
}

}  // namespace

std::vector<int> boundary_sources(const Model& model, int layer) {
  const std::set<int> sources = boundary_layers(model, layer);
  return {sources.begin(), sources.end()};
}

Stages balanced_stages(const std::vector<double>& seconds, int stages) {
  if (stages < 1 || seconds.size() < static_cast<std::size_t>(stages))
    throw std::invalid_argument("balanced_stages: fewer layers than stages");
  std::vector<double> sums{0};
  for (const double layer : seconds) sums.push_back(sums.back() + layer);
  const auto best = best_divisions(sums, stages);
  Stages first_layers(stages + 1);
  first_layers.back() = seconds.size();
  for (std::size_t stage = first_layers.size() - 1; stage > 0; --stage) {
    first_layers[stage - 1] = best[stage][first_layers[stage]].begin;
  }
  return first_layers;
}

namespace {

bool is_transformer_block(const Model& model, const LayerBlock& block) {
  return std::any_of(model.layers.begin() + block.first, model.layers.begin() + block.last,
                     [](const Layer& layer) { return layer.kind == LayerKind::attention; });
}

}  // namespace

Stages divisible_at(const Model& model) {
  const int layers = model.layers.size();
  Stages starts{0};
  for (const LayerBlock& block : model.blocks)
    if (is_transformer_block(model, block)) starts.insert(starts.end(), {block.first, block.last});
  if (starts.size() == 1) {
    starts.resize(layers);
    std::iota(starts.begin(), starts.end(), 0);
  }
  starts.push_back(layers);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

Stages balanced_stages(const Model& model, const std::vector<double>& seconds, int stages) {
  const Stages starts = divisible_at(model);
  const int units = starts.size() - 1;
  if (units < stages) return balanced_stages(seconds, stages);
  std::vector<double> of_units;
  for (int unit = 0; unit < units; ++unit)
    of_units.push_back(
        std::accumulate(seconds.begin() + starts[unit], seconds.begin() + starts[unit + 1], 0.0));
  Stages balanced = balanced_stages(of_units, stages);
  for (int& first : balanced) first = starts[first];
  return balanced;
}

Stages with_small_boundaries(const Model& model, const std::vector<double>& seconds, Stages stages,
                             double slack) {
  const auto time = [&](int first, int last) {
    return std::accumulate(seconds.begin() + first, seconds.begin() + last, 0.0);
  };
  double slowest = 0;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i)
    slowest = std::max(slowest, time(stages[i], stages[i + 1]));
  for (std::size_t i = 1; i + 1 < stages.size(); ++i) {
    const auto cost = [&](int at) { return boundary_elements(model, at); };
    for (int at = stages[i - 1] + 1; at < stages[i + 1]; ++at) {
      const bool fits = std::max(time(stages[i - 1], at), time(at, stages[i + 1])) <= slack * slowest;
      if (fits && cost(at) < cost(stages[i])) stages[i] = at;
    }
  }
  return stages;
}

double boundary_elements(const Model& model, int layer) {
  double sum = 0;
  for (const int source : boundary_layers(model, layer)) {
    const Shape& shape = source < 0 ? model.input : model.layers[source].output;
    sum += elements(shape);
  }
  return sum;
}

Model stage_model(const Model& model, int first, int last) {
  Model stage = model;
  stage.layers.assign(model.layers.begin() + first, model.layers.begin() + last);
  const auto sources = boundary_layers(model, first);
  if (first > 0) stage.input = {static_cast<std::int64_t>(boundary_elements(model, first))};
  if (first > 0 && sources.size() == 1 && *sources.begin() >= 0)
    stage.input = model.layers[*sources.begin()].output;
  for (Layer& layer : stage.layers) {
    untie(model, first, layer);
    for (int& input : layer.inputs) input = std::max(kNetworkInput, input - first);
  }
  return stage;
}

}  // namespace stepcast
