#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "models/partition/token_shard.hpp"
#include "partitioned_training.hpp"
#include "planned_parts.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/scenario_points/validation_plan.hpp"

namespace stepcast::real_tokens_test {
namespace {

constexpr int kSteps = 4;
constexpr std::int64_t kBatch = 4;  // samples of a replica

/// Places of tokens, dropout, an output that a divided and a shared layer read, and classes.
const std::string kClasses = R"(
name: classes
source: test
input: [8, 5]
layers:
  - {name: embed, kind: dense, units: 16}
  - {name: places, kind: position_embedding}
  - {name: norm1, kind: layer_norm}
  - {name: qkv, kind: dense, units: 48}
  - {name: attention, kind: attention, heads: 4, causal: true}
  - {name: projection, kind: dense, units: 16}
  - {name: drop, kind: dropout, rate: 0.25}
  - {name: add1, kind: add, inputs: [drop, places]}
  - {name: norm2, kind: layer_norm}
  - {name: expand, kind: dense, units: 24}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 16}
  - {name: add2, kind: add, inputs: [contract, norm2]}
  - {name: scores, kind: dense, units: 10}
  - {name: loss, kind: softmax_cross_entropy}
)";

/// Attention without a mask, a bias-free layer, two layers that read one gathered input, and a loss over all
/// elements, which no rank shares.
const std::string kValues = R"(
name: values
source: test
input: [12, 5]
layers:
  - {name: first, kind: dense, units: 12}
  - {name: gelu0, kind: gelu}
  - {name: embed, kind: dense, units: 8, bias: false}
  - {name: norm, kind: layer_norm}
  - {name: qkv, kind: dense, inputs: [norm], units: 24}
  - {name: attention, kind: attention, heads: 4}
  - {name: projection, kind: dense, units: 8}
  - {name: expand, kind: dense, inputs: [norm], units: 12}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: add, kind: add, inputs: [contract, projection, embed]}
  - {name: out, kind: dense, units: 6}
  - {name: loss, kind: mean_squared_error}
)";

struct Case {
  int tensor = 1, context = 1, data = 1;
  std::string options = "halo_overlap: true";
  bool sharded = false;  ///< only the owner of a parameter has its last value
};

/// The samples from `first` on, of some tokens.
void fill(Network& network, const Model& model, std::int64_t first, const std::vector<Rows>& inputs,
          const std::vector<Rows>& targets) {
  const auto write = [&](Tensor& tensor, const std::vector<Rows>& tokens, const auto& value) {
    const std::int64_t samples = tensor.shape().front(),
                       each = std::ssize(tensor.read()) / samples /
                              std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0},
                                              [](auto sum, const Rows&run) { return sum + run.size(); });
    std::vector<float> values;
    for (std::int64_t sample = first; sample < first + samples; ++sample) {
      for (const Rows& run : tokens) {
        for (std::int64_t i = run.first * each; i < run.last * each; ++i) values.push_back(value(sample, i));
      }
    }
    tensor.write(values);
  };
  write(network.input(), inputs, input_value);
  const Layer& loss = model.layers.back();
  const bool classes = loss.kind == LayerKind::softmax_cross_entropy;
  write(*network.kernel(model.layers.size() - 1).targets(), targets,
        [&](std::int64_t sample, std::int64_t i) {
          return classes ? static_cast<float>((7 * sample + 3 * i) % loss.input.back())
                         : target_value(sample, i);
        });
}

std::string strategy_of(const Case& c) {
  return fmt::format(
      "{{kind: synchronous, all_reduce: ring, mesh: {{tensor: {}, context: {}, data: {}}}, {}}}", c.tensor,
      c.context, c.data, c.options);
}

/// Whether every rank has the targets of all tokens of its place in the context axis.
bool shares_classes(const PlannedParts& planned) {
  return planned.plan.partition.ways > 1 &&
         planned.model.layers.back().kind == LayerKind::softmax_cross_entropy;
}

std::vector<Trained> trained_together(const PlannedParts& planned, const Case& c) {
  const ModelPartition& partition = planned.plan.partition;
  std::vector<Trained> results(planned.plan.endpoints.size());
  run_parts(planned, [&](int rank, std::mutex& building, const auto& run) {
    const int ranks = ranks_of_samples(partition), place = rank % ranks, replica = rank / ranks;
    const auto backend = make_onednn_backend();
    std::unique_lock lock(building);
    const PipelineStageNetworks networks = pipeline_stage_networks(
        *backend, planned.model, partition, {0, 1, place},
        {.batch = partition.micro_batch, .optimizer = momentum_optimizer(0.1 / c.data)});
    lock.unlock();
    const auto tokens = [&](bool targets) {
      return tokens_of_rank(planned.model, partition.ways, partition.tokens, place, targets);
    };
    const ChunkNetworks& chunk = networks.chunks.front();
    for (int i = 0; i < partition.micro_batches; ++i)
      fill(*chunk.of_micro_batch[i], planned.model, kBatch * replica + i * partition.micro_batch,
           tokens(false), tokens(true));
    const auto device =
        pipeline_stage_device(networks, partition, 0, owned_slices(planned.plan, RankId(rank), networks, 0));
    CHECK(run(*device).step_ends.size() == kSteps);
    results[rank].parameters = read_parameters(chunk.first());
    for (const auto& one : chunk.of_micro_batch) results[rank].loss += one->loss();
  });
  return results;
}

void check_trains_as_alone(const std::string& text, const Case& c) {
  CAPTURE(strategy_of(c));
  const int ranks = c.tensor * c.context * c.data;
  const PlannedParts planned(ranks, text, strategy_of(c), kBatch, kSteps);
  REQUIRE(unsupported_in_real_run(planned.plan, ranks, false) == "");
  const Trained alone =
      trained_on_one_rank(planned.model, kBatch * c.data, 0.1, kSteps, [&](Network& network) {
        const std::vector<Rows> all{{0, planned.model.input.front()}};
        fill(network, planned.model, 0, all, all);
      });
  const std::vector<Trained> all = trained_together(planned, c);
  double loss = 0;
  for (const Trained& one : all) loss += one.loss;
  const bool by_tensor = planned.plan.partition.tokens.by_tensor && !shares_classes(planned);
  CHECK(loss / c.data / (by_tensor ? 1 : c.tensor) == Approx(alone.loss).epsilon(1e-5));
  std::size_t next = 0;
  for (std::size_t i = 0; i < planned.model.layers.size(); ++i) {
    for (std::size_t k = 0; k < planned.model.layers[i].parameters.size(); ++k, ++next) {
      for (int rank = 0; rank < ranks; ++rank) {
        CAPTURE(planned.model.layers[i].name, k, rank);
        const SharedPart part = tensor_shard(planned.model, c.tensor, rank % c.tensor);
        const std::vector<float> expected = extract_part(alone.parameters.at(next), part, i, k);
        const auto right = [&](int of, std::size_t element) {
          return all[of].parameters.at(next).at(element) == Approx(expected[element]).margin(5e-6);
        };
        REQUIRE(all[rank].parameters.at(next).size() == expected.size());
        for (std::size_t element = 0; element < expected.size(); ++element) {
          bool found = right(rank, element);
          for (int of = rank % c.tensor; c.sharded && of < ranks; of += c.tensor)
            found = found || right(of, element);
          CHECK(found);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("ranks that share layers and divide the tokens between them train like one rank, to rounding",
          "[validate][training]") {
  const std::string text = GENERATE(kClasses, kValues, test::kStack);
  const auto c = GENERATE(Case{2}, Case{2, 1, 1, "halo_overlap: false"}, Case{2, 1, 2, "bucket: tensor"},
                          Case{2, 1, 2, "overlap: false"}, Case{2, 1, 2, "shard: optimizer", true});
  if (text == kClasses && c.data > 1) return;  // replicas drop other elements
  Case divided = c;
  divided.options += ", sequence_parallel: true";
  check_trains_as_alone(text, divided);
}

TEST_CASE("four ranks, micro-batches and recomputation with divided tokens train like one rank",
          "[validate][training]") {
  check_trains_as_alone(kValues, {4, 1, 1, "sequence_parallel: true"});
  check_trains_as_alone(kClasses, {4, 1, 1, "sequence_parallel: true"});
  check_trains_as_alone(test::kStack, {2, 1, 1, "sequence_parallel: true, accumulation: 2"});
  check_trains_as_alone(test::kStack, {2, 1, 2, "sequence_parallel: true, accumulation: 2"});
  check_trains_as_alone(kValues, {2, 1, 1, "sequence_parallel: true, accumulation: 2"});
  check_trains_as_alone(kValues, {2, 1, 1, "sequence_parallel: true, recompute: full"});
  check_trains_as_alone(kValues, {2, 1, 1, "sequence_parallel: true, accumulation: 2, recompute: full"});
}

TEST_CASE("ranks with parts of every sequence train like one rank, to rounding", "[validate][training]") {
  const std::string text = GENERATE(kClasses, kValues, test::kStack);
  const std::string exchange = GENERATE("all_to_all", "all_gather");
  const auto c = GENERATE(Case{1, 2}, Case{1, 2, 1, "halo_overlap: false"}, Case{1, 2, 2, "bucket: tensor"},
                          Case{1, 2, 2, "overlap: false"}, Case{1, 2, 2, "shard: optimizer", true},
                          Case{1, 2, 1, "shard: parameters", true});
  if (text == kClasses && c.data > 1) return;  // replicas drop other elements
  Case divided = c;
  divided.options += ", context_exchange: " + exchange;
  check_trains_as_alone(text, divided);
}

TEST_CASE("four parts of a sequence, micro-batches, recomputation and shared layers train like one rank",
          "[validate][training]") {
  const std::string exchange = GENERATE("context_exchange: all_to_all", "context_exchange: all_gather");
  check_trains_as_alone(kValues, {1, 4, 1, exchange});
  check_trains_as_alone(kClasses, {1, 4, 1, exchange});
  check_trains_as_alone(test::kStack, {1, 2, 1, exchange + ", accumulation: 2"});
  check_trains_as_alone(kValues, {1, 2, 1, exchange + ", recompute: full"});
  check_trains_as_alone(kClasses, {2, 2, 1, exchange});
  check_trains_as_alone(kClasses, {2, 2, 1, exchange + ", sequence_parallel: true"});
  check_trains_as_alone(kValues, {2, 2, 1, exchange + ", sequence_parallel: true"});
}

TEST_CASE("with a causal mask and gathered keys a rank has an early and a late part of a sequence",
          "[validate]") {
  const PlannedParts planned(2, kClasses, strategy_of({1, 2, 1, "context_exchange: all_gather"}), 4, 1);
  const auto tokens = [&](int place) {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const Rows& run : tokens_of_rank(planned.model, 1, planned.plan.partition.tokens, place, false))
      all.emplace_back(run.first, run.last);
    return all;
  };
  CHECK(tokens(0) == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 2}, {6, 8}});
  CHECK(tokens(1) == std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 4}, {4, 6}});
}

TEST_CASE("divisions of tokens that kernels cannot run are refused with the reason", "[validate]") {
  const auto why = [](const Case& c) {
    const int ranks = c.tensor * c.context * c.data;
    return PlannedParts(ranks, kClasses, strategy_of(c), 4, 1).plan.partition.simulated_only;
  };
  CHECK(why({1, 2, 1, "context_exchange: ring"}) ==
        "context_exchange: ring, where attention begins with the keys that have arrived");
  CHECK(why({1, 2, 1, "context_exchange: pass_kv"}) ==
        "context_exchange: pass_kv, where attention begins with the keys that have arrived");
  CHECK(why({2, 1, 2, "sequence_parallel: true, shard: parameters"}) ==
        "sequence_parallel with shard: gradients or parameters");
}

}  // namespace stepcast::real_tokens_test
