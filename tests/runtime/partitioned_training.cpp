#include "partitioned_training.hpp"

#include <catch2/catch.hpp>

#include "planned_parts.hpp"
#include "runtime/devices/rank_shard.hpp"

namespace stepcast::test {

const std::string kStack = R"(
name: stack
source: test
transformer_stack: {layers: 2, width: 16, heads: 4, sequence: 6, vocabulary: 10}
)";

const std::string kUnshared = R"(
name: classes
source: test
input: [5, 3]
layers:
  - {name: embed, kind: dense, units: 8}
  - {name: norm1, kind: layer_norm}
  - {name: qkv, kind: dense, units: 24}
  - {name: attention, kind: attention, heads: 4}
  - {name: projection, kind: dense, units: 8}
  - {name: add1, kind: add, inputs: [projection, embed]}
  - {name: expand, kind: dense, units: 12}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8, bias: false}
  - {name: add2, kind: add, inputs: [contract, add1]}
  - {name: flatten, kind: reshape, shape: [40]}
  - {name: classes, kind: dense, units: 6}
  - {name: loss, kind: softmax_cross_entropy}
)";

const std::string kFilters = R"(
name: filters
source: test
input: [3, 8, 6]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 3, pad: 1, bias: false}
  - {name: bn1, kind: batch_norm}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: convolution, filters: 8, kernel: 3, pad: 1}
  - {name: shortcut, kind: convolution, inputs: [relu1], filters: 8, kernel: 1}
  - {name: add2, kind: add, inputs: [conv2, shortcut]}
  - {name: add3, kind: add, inputs: [add2, relu1]}
  - {name: relu2, kind: relu}
  - {name: pool, kind: max_pool, kernel: 2}
  - {name: flatten, kind: reshape, shape: [96]}
  - {name: fc1, kind: dense, units: 12}
  - {name: tanh, kind: tanh}
  - {name: fc2, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

const std::string kTokens = R"(
name: tokens
source: test
input: [5, 3]
layers:
  - {name: embed, kind: dense, units: 8}
  - {name: gelu, kind: gelu}
  - {name: mix, kind: dense, units: 4}
  - {name: flatten, kind: reshape, shape: [20]}
  - {name: tanh, kind: tanh}
  - {name: classes, kind: dense, units: 8}
  - {name: loss, kind: softmax_cross_entropy}
)";

const std::string kLocal = R"(
name: local
source: test
input: [2, 8, 8]
layers:
  - {name: filter1, kind: locally_connected, filters: 3, kernel: 3, pad: 1}
  - {name: relu1, kind: relu}
  - {name: pool1, kind: average_pool, kernel: 3, stride: 1, pad: same}
  - {name: filter2, kind: locally_connected, filters: 4, kernel: [3, 5], pad: same, bias: false}
  - {name: tanh2, kind: tanh}
  - {name: filter3, kind: locally_connected, filters: 2, kernel: 3, stride: 2, pad: 1}
  - {name: pool3, kind: max_pool, kernel: 2}
  - {name: flatten, kind: reshape, shape: [8]}
  - {name: fc1, kind: dense, units: 12}
  - {name: tanh, kind: tanh}
  - {name: fc2, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

const std::string kElements = R"(
name: elements
source: test
input: [6]
layers:
  - {name: fc1, kind: dense, units: 12}
  - {name: tanh, kind: tanh}
  - {name: fc2, kind: dense, units: 8}
  - {name: loss, kind: sigmoid_cross_entropy}
)";

const std::string kUnits = R"(
name: units
source: test
input: [2, 8, 8]
layers:
  - {name: filter1, kind: locally_connected, filters: 3, kernel: 3, pad: 1}
  - {name: pool1, kind: average_pool, kernel: 2}
  - {name: flatten, kind: reshape, shape: [48]}
  - {name: output, kind: dense, units: 8}
  - {name: loss, kind: sigmoid_cross_entropy}
)";

const std::string kConvolved = R"(
name: convolved
source: test
input: [2, 8, 8]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 3, pad: 1}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: convolution, filters: 8, kernel: 5, pad: 2, bias: false}
  - {name: pool2, kind: max_pool, kernel: 2}
  - {name: flatten, kind: reshape, shape: [128]}
  - {name: fc1, kind: dense, units: 16}
  - {name: tanh, kind: tanh}
  - {name: fc2, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

namespace {

constexpr int kSteps = 4;
constexpr double kRate = 0.05;

/// Fills the network with samples from `first` on. @param positions  its part of each; null: whole samples
void fill(Network& network, const Model& model, std::int64_t first,
          const std::vector<SampleRun>* positions = nullptr, std::int64_t first_target = 0) {
  const bool elements_of_loss = model.layers.back().kind != LayerKind::softmax_cross_entropy;
  const std::int64_t classes = elements_of_loss ? 2 : model.layers.back().input.back();
  std::vector<std::int64_t> own;
  for (std::size_t i = 0; positions != nullptr && i < positions->size(); ++i) {
    for (std::int64_t k = 0; k < (*positions)[i].length; ++k) own.push_back((*positions)[i].in_whole + k);
  }
  fill_samples(network.input(), first, [&own](std::int64_t sample, std::int64_t row) {
    return input_value(sample, own.empty() ? row : own[row]);
  });
  fill_samples(*network.kernel(model.layers.size() - 1).targets(), first,
               [=](std::int64_t sample, std::int64_t row) {
                 return static_cast<float>((7 * sample + 3 * (first_target + row)) % classes);
               });
}

/// The result of every rank.
std::vector<Trained> trained_shared(const PlannedParts& planned, const SharedCase& c,
                                    const SharedPlace& place) {
  const ModelPartition& partition = planned.plan.partition;
  std::vector<Trained> results(planned.plan.endpoints.size());
  const auto train = [&](int rank, std::mutex& building, const auto& run) {
    const auto backend = place.make();
    std::unique_lock lock(building);
    const bool servers = partition.form == ModelPartition::Form::machines;
    const int part = servers ? machine_of(planned.plan, RankId(rank)) : rank % c.ways;
    const TensorParallelNetwork shared = tensor_parallel_network(*backend, planned.model, partition, part,
                                                                 {.optimizer = momentum_optimizer(kRate)});
    lock.unlock();
    DeviceLearning learning;
    learning.rate.base = kRate;
    learning.summed = planned.plan.summed_gradients;
    std::int64_t pass = 0;
    std::vector<SampleRun> positions;
    if (shared.part->spatial)
      positions = runs_of_shard(planned.model.input, partition.spatial, rank % c.ways);
    const Layer& loss = shared.network->model().layers.back();
    const bool has_part = loss.input != planned.model.layers.back().input;
    const std::int64_t first_target =
        has_part && loss.kind == LayerKind::sigmoid_cross_entropy ? part * loss.input.back() : 0;
    learning.next_batch = [&] {
      fill(*shared.network, planned.model,
           rank / c.ways * c.batch + pass++ % partition.micro_batches * partition.micro_batch, &positions,
           first_target);
    };
    const auto device = servers ? machine_device(shared, planned.plan, RankId(rank), learning)
                                : tensor_parallel_device(shared, learning);
    const RealRun done = run(*device);
    CHECK(done.step_ends.size() == (rank < c.ranks ? kSteps : 0));
    results[rank] = {read_parameters(*shared.network), shared.network->loss()};
  };
  run_parts(planned, train, nullptr, place.by_backend);
  return results;
}

void check_close(const std::vector<float>& found, const std::vector<float>& expected, double margin) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(margin));
}

}  // namespace

void check_trains_as_whole(const std::string& text, const SharedCase& c, const SharedPlace& place) {
  CAPTURE(c.kind, c.options, c.ranks, place.by_backend);
  const PlannedParts planned(c.ranks, text, "{kind: " + c.kind + ", " + c.options + "}", c.batch, kSteps);
  REQUIRE(planned.plan.partition.simulated_only == "");
  const Trained alone = trained_on_one_rank(planned.model, c.batch * (c.ranks / c.ways), kRate, kSteps,
                                            [&](Network& network) { fill(network, planned.model, 0); });
  const std::vector<Trained> all = trained_shared(planned, c, place);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(c.ranks); ++rank) {
    const SharedPart part =
        tensor_shard(planned.model, planned.plan.partition, static_cast<int>(rank) % c.ways);
    std::size_t next = 0;
    for (std::size_t i = 0; i < planned.model.layers.size(); ++i) {
      for (std::size_t k = 0; k < planned.model.layers[i].parameters.size(); ++k, ++next)
        check_close(all[rank].parameters.at(next), extract_part(alone.parameters.at(next), part, i, k),
                    place.margin);
    }
    const bool one_batch = c.ranks == c.ways && planned.plan.partition.micro_batches == 1;
    const bool whole_loss = part.shares.back() || (!part.gathered.empty() && part.gathered.back());
    if (one_batch && whole_loss) CHECK(all[rank].loss == Approx(alone.loss).margin(place.margin));
  }
}

}  // namespace stepcast::test
