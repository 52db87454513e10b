#include "strategies/mesh/recomputation.hpp"

#include <algorithm>

#include "models/cost/pass_cost.hpp"

namespace stepcast {
namespace {

constexpr int kMostBlocks = 1000;

/// Layers that nothing computes again, and before, between and after which segments end.
void leave(RecomputedLayer& layer) {
  layer.checkpointed = false;
  layer.again = 0;
}

/// The layer that reads a layer's output, if one does; past what changes no shape.
const Layer* reader_of(const Model& part, std::size_t layer) {
  for (std::size_t i = layer + 1; i < part.layers.size(); ++i) {
    const Layer& reader = part.layers[i];
    if (std::ranges::count(reader.inputs, static_cast<int>(layer)) == 0) continue;
    const bool passes = reader.kind == LayerKind::rotary_embedding && reader.inputs.size() == 1;
    return passes ? reader_of(part, i) : &reader;
  }
  return nullptr;
}

/// Widths of the products that a dense layer stands for: those of queries, keys and values before attention,
/// those of gate and hidden units before SwiGLU, or its own.
std::vector<double> products_of(const Model& part, std::size_t layer) {
  const double width = part.layers[layer].output.back();
  const Layer* reader = reader_of(part, layer);
  if (reader != nullptr && reader->kind == LayerKind::swiglu) return {width / 2, width / 2};
  if (reader == nullptr || reader->kind != LayerKind::attention || reader->inputs.size() > 1) return {width};
  const double heads = reader->heads;
  const double kv_heads = reader->kv_heads > 0 ? reader->kv_heads : reader->heads;
  const double head = width / (heads + 2 * kv_heads);
  return {heads * head, kv_heads * head, kv_heads * head};
}

/// Of the products of a block, counted from 1, those with an even number are computed again.
void keep_second_products(const Model& part, LayerRange block, std::vector<RecomputedLayer>& how) {
  int number = 0;
  for (int i = block.first; i < block.last; ++i) {
    const Layer& layer = part.layers[i];
    RecomputedLayer& one = how[i];
    if (layer.kind == LayerKind::attention && layer.position_bias < 0)
      one = {.segment = one.segment, .again = 0, .kept = 1, .keeps_inside = true};
    if (layer.kind != LayerKind::dense) continue;
    double all = 0, even = 0;
    for (const double width : products_of(part, i)) {
      all += width;
      even += ++number % 2 == 0 ? width : 0;
    }
    one.again = even / all;
    one.kept = 1 - one.again;
  }
}

std::vector<RecomputedLayer> attention_cores(const Model& part) {
  std::vector<RecomputedLayer> how(part.layers.size());
  int segment = 0;
  for (std::size_t i = 0; i < how.size(); ++i) {
    const bool core = part.layers[i].kind == LayerKind::attention;
    how[i].segment = core ? ++segment : segment;
    if (!core) leave(how[i]);
    segment += core ? 1 : 0;
  }
  return how;
}

/// The backward pass of an addition reads nothing, that of a product only its input.
void stop_early(const Model& part, LayerRange block, std::vector<RecomputedLayer>& how) {
  for (int i = block.last - 1; i >= block.first; --i) {
    const LayerKind kind = part.layers[i].kind;
    if (kind != LayerKind::add && kind != LayerKind::dense) return;
    how[i].again = 0;
    if (kind == LayerKind::dense) return;
  }
}

/// Blocks of which every N-th is computed again.
std::vector<RecomputedLayer> blocks(const Model& part, const Recompute& recompute) {
  std::vector<RecomputedLayer> how(part.layers.size());
  int segment = 0, number = 0, before = 0;
  const auto pass = [&](int first, int last, bool again) {
    for (int i = first; i < last; ++i) {
      how[i].segment = segment;
      if (!again) leave(how[i]);
    }
    segment += first < last ? 1 : 0;
  };
  for (const LayerBlock& block : part.blocks) {
    pass(before, block.first, false);
    const bool again = ++number % recompute.every == 0;
    pass(block.first, block.last, again);
    if (again && recompute.kind == Recompute::Kind::operators)
      keep_second_products(part, {block.first, block.last}, how);
    if (again && recompute.early_stop) stop_early(part, {block.first, block.last}, how);
    before = block.last;
  }
  pass(before, how.size(), false);
  return how;
}

/// The calls around layers that are computed again. The results of reduce-scatters stay.
std::vector<LayerCalls> without_scatters(std::vector<LayerCalls> calls, const Plan& plan) {
  for (LayerCalls& layer : calls) {
    std::erase_if(layer.after_forward, [&](const Call& call) {
      return plan.collectives[call.collective.index()].kind == Collective::Kind::reduce_scatter;
    });
  }
  return calls;
}

bool is_share(const RecomputedLayer& layer) {
  return layer.again > 0 && layer.again < 1;
}

/// A share of a layer, between the calls of the whole layer.
void append_share(const LayerCalls& calls, LayerRange segment, std::vector<OverlapSegment>& steps) {
  for (const Call& call : calls.before_forward) steps.push_back({call, {}, {}, {}});
  steps.push_back({{}, {}, segment, {}});
  for (const Call& call : calls.after_forward) steps.push_back({call, {}, {}, {}});
}

const Keys& every_keys() {
  static const Keys keys{{"every", Allowed(KeyType::integer, {1, 1000}), "required", "every N-th block"}};
  return keys;
}

}  // namespace

Key recompute_key() {
  return {"recompute",
          Allowed({KeyType::boolean, KeyType::name, KeyType::mapping}, {},
                  {"none", "selective", "operators", "full", "stage"}),
          "false",
          "what is computed again in the backward pass: the core of attention, all but attention and every "
          "second product, blocks, or whole stages; `{every: N}`: every N-th block; `true`: `full`, with "
          "`schedule: gpipe` `stage`",
          every_keys};
}

Keys recompute_keys() {
  return {recompute_key(),
          {"early_stop", KeyType::boolean, "false",
           "recompute: full: whether the last product of a block, of which the backward pass reads only the "
           "input, is left out, as torch.utils.checkpoint does"}};
}

namespace {

Recompute read_kind(const YamlValue& value, PipelineOrder order) {
  using Kind = Recompute::Kind;
  if (value.is(YamlNode::Kind::mapping)) {
    const YamlMap map = read_map(value, every_keys());
    return {Kind::full, static_cast<int>(map.at("every", "an integer >= 1").integer(1, kMostBlocks))};
  }
  const std::string& text = value.node().text;
  if (text == "true") return {order == PipelineOrder::gpipe ? Kind::stage : Kind::full};
  if (text == "false") return {};
  const std::vector<std::string> names{"none", "selective", "operators", "full", "stage"};
  const auto found = std::ranges::find(names, text);
  if (!value.is(YamlNode::Kind::scalar) || found == names.end())
    value.expected("true, false, none, selective, operators, full, stage or {every: N}");
  return {static_cast<Kind>(found - names.begin())};
}

}  // namespace

Recompute read_recompute(const YamlMap& map, PipelineOrder order) {
  Recompute recompute;
  if (const auto again = map.maybe("recompute")) recompute = read_kind(*again, order);
  const bool blocks = recompute.kind == Recompute::Kind::full;
  if (const auto stops = map.maybe("early_stop")) recompute.early_stop = stops->boolean() && blocks;
  return recompute;
}

std::vector<RecomputedLayer> recomputed_layers(const Model& part, const Recompute& recompute) {
  switch (recompute.kind) {
    case Recompute::Kind::none:
      return {};
    case Recompute::Kind::stage:
      return std::vector<RecomputedLayer>(part.layers.size());
    case Recompute::Kind::selective:
      return attention_cores(part);
    default:
      break;
  }
  if (!part.blocks.empty()) return blocks(part, recompute);
  MemoryOptions additions;
  additions.recomputation = MemoryOptions::Recomputation::blocks;
  return recomputed_layers(part, additions);
}

PassSegments make_recomputation(const std::vector<RecomputedLayer>& how, LayerRange layers,
                                const GroupPlan& groups) {
  PassSegments made;
  if (how.empty()) return made;
  const bool keeps = std::ranges::any_of(how, [](const RecomputedLayer& one) { return one.kept > 0; });
  const std::vector<LayerCalls> calls = keeps ? without_scatters(groups.calls, groups.plan) : groups.calls;
  const int extra = kSegmentsPerLayer * calls.size();
  const auto again = [&](int layer) { return how[layer].again; };
  for (int i = layers.first, end = i; i < layers.last; i = end) {
    end = i + 1;
    if (again(i) > 0 && again(i) < 1) append_share(calls[i], {extra + i, extra + i + 1}, made.forward);
    if (again(i) < 1) continue;
    while (end < layers.last && again(end) >= 1) ++end;
    const PassSegments run =
        make_passes(calls, {i, end}, sums_by_layer({}, calls.size()), groups.options.halo_overlap);
    made.forward.insert(made.forward.end(), run.forward.begin(), run.forward.end());
  }
  return made;
}

bool has_shares(const std::vector<RecomputedLayer>& how) {
  return std::ranges::any_of(how, is_share);
}

void add_shares(const std::vector<RecomputedLayer>& how, std::size_t layers, Workload& workload) {
  const auto append = [&](std::vector<LayerSeconds>& segments) {
    for (std::size_t i = 0; i < layers; ++i) {
      double forward = 0;
      for (std::size_t k = 0; k < kSegmentsPerLayer; ++k)
        forward += segments[kSegmentsPerLayer * i + k].forward;
      segments.push_back({how.empty() ? 0 : how[i].again * forward, 0, 0});
    }
  };
  append(workload.median);
  if (!workload.host.empty()) append(workload.host);
  for (auto& sample : workload.samples) append(sample);
  for (std::size_t i = 0; i < layers; ++i)
    workload.layer_names.push_back(workload.layer_names[kSegmentsPerLayer * i]);
  workload.statistics.resize(workload.median.size());
}

}  // namespace stepcast
