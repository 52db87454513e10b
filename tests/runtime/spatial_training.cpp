#include "spatial_training.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "models/network/layer.hpp"
#include "planned_parts.hpp"
#include "runtime/devices/spatial_device.hpp"

namespace stepcast::test {

const std::string kMesh = R"(
name: mesh
source: test
input: [3, 26, 24]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 5, stride: 2, pad: 2, bias: false}
  - {name: relu1, kind: relu}
  - {name: bn1, kind: batch_norm}
  - {name: conv2, kind: convolution, filters: 12, kernel: 3, pad: 1}
  - {name: relu2, kind: relu}
  - {name: mean, kind: average_pool, kernel: 3, stride: 1, pad: 1}
  - {name: conv3, kind: convolution, filters: 8, kernel: 3, stride: 2, pad: 1, bias: false}
  - {name: bn3, kind: batch_norm}
  - {name: prediction, kind: convolution, filters: 4, kernel: 1}
  - {name: flatten, kind: reshape, shape: [168]}
  - {name: sigmoid, kind: sigmoid}
  - {name: loss, kind: mean_squared_error}
)";

std::string pools(const std::string& input) {
  return "name: pools\nsource: test\ninput: " + input + R"(
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 3, pad: 1, bias: false}
  - {name: bn1, kind: batch_norm}
  - {name: relu1, kind: relu}
  - {name: pool1, kind: max_pool, kernel: 3, stride: 2, pad: 1}
  - {name: shortcut, kind: convolution, filters: 12, kernel: 1}
  - {name: conv2, kind: convolution, inputs: [pool1], filters: 12, kernel: 3, pad: 1}
  - {name: add2, kind: add, inputs: [conv2, shortcut]}
  - {name: relu2, kind: relu}
  - {name: pool2, kind: max_pool, kernel: 2, stride: 1}
  - {name: conv3, kind: convolution, filters: 4, kernel: 3, pad: 1}
  - {name: conv4, kind: convolution, inputs: [pool2], filters: 4, kernel: 1}
  - {name: add3, kind: add, inputs: [conv3, conv4]}
  - {name: pool3, kind: max_pool, kernel: 2}
  - {name: sigmoid, kind: sigmoid}
  - {name: loss, kind: mean_squared_error}
)";
}

const std::string kClasses = R"(
name: classes
source: test
input: [2, 16, 16]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 3, pad: 1}
  - {name: relu1, kind: relu}
  - {name: pool1, kind: max_pool, kernel: 2}
  - {name: conv2, kind: convolution, filters: 8, kernel: 3, pad: 1}
  - {name: tanh2, kind: tanh}
  - {name: flatten, kind: reshape, shape: [512]}
  - {name: fc1, kind: dense, units: 16}
  - {name: tanh1, kind: tanh}
  - {name: fc2, kind: dense, units: 5}
  - {name: loss, kind: mean_squared_error}
)";

namespace {

constexpr int kSteps = 3;

/// Index in the whole map of element `element` of a part of the map, or of a flattened map.
std::int64_t in_whole(const Shape& map, const SpatialPartition& partition, int place, std::int64_t element) {
  const std::vector<int> grid = grid_place(partition.parts, place);
  std::vector<Rows> rows;
  for (std::size_t i = 0; i < partition.parts.size(); ++i)
    rows.push_back(part_of(map[i + 1], partition.parts[i], grid[i]));
  std::int64_t found = 0, stride = 1;
  for (std::size_t i = map.size(); i-- > 1;) {
    found += stride * (rows[i - 1].first + element % rows[i - 1].size());
    element /= rows[i - 1].size();
    stride *= map[i];
  }
  return found + stride * element;
}

struct Where {
  const SpatialPartition* partition = nullptr;  ///< null: all of a sample
  int place = 0;
};

/// Fills with samples from `first` on, or with the part of them at `where`.
void fill(Tensor& tensor, float (*value)(std::int64_t, std::int64_t), std::int64_t first, const Shape& map,
          const Where& where) {
  fill_samples(tensor, first, [&](std::int64_t sample, std::int64_t element) {
    return value(
        sample, where.partition == nullptr ? element : in_whole(map, *where.partition, where.place, element));
  });
}

}  // namespace

ShardTraining trained_in_shards(const std::string& text, const PartitionCase& c, const Shape& labels,
                                const ShardMaker& place_of) {
  const PlannedParts planned(
      c.ranks, text, fmt::format("{{kind: spatial, halo_overlap: {}, {}}}", c.halo_overlap, c.options),
      c.batch, kSteps);
  const ModelPartition& partition = planned.plan.partition;
  REQUIRE(partition.simulated_only == "");
  const Model& model = planned.model;
  const bool whole_at_the_end = partition.spatial.whole_from < model.layers.size();
  std::vector<ShardTraining> results(c.ranks);
  run_parts(
      planned,
      [&](int rank, std::mutex& building, const auto& run) {
        const int replica = rank / c.ways, place = rank % c.ways;
        const auto backend = place_of.make();
        std::unique_lock lock(building);
        const SpatialNetwork shard = spatial_network(
            *backend, model, partition, place, {.optimizer = momentum_optimizer(0.2 * c.ways / c.ranks)});
        lock.unlock();
        const std::int64_t first = replica * c.batch, mine = c.batch / c.ways;
        fill(shard.network->input(), input_value, first, model.input, {&partition.spatial, place});
        Tensor& targets = *shard.network->kernel(model.layers.size() - 1).targets();
        if (whole_at_the_end) {
          fill(targets, target_value, first + place * mine, {}, {});
        } else {
          fill(targets, target_value, first, labels, {&partition.spatial, place});
        }
        const auto device = spatial_device(shard, model, partition, place);
        CHECK(run(*device).step_ends.size() == kSteps);
        results[rank] = {read_parameters(*shard.network), {}, shard.network->loss()};
      },
      nullptr, place_of.by_backend);
  ShardTraining sum{results.front().parameters, results.back().parameters, 0};
  for (const ShardTraining& one : results) sum.loss += one.loss * c.ways / c.ranks;
  return sum;
}

void check_trains_as_whole(const std::string& text, const PartitionCase& c, const Shape& labels,
                           const ShardMaker& place) {
  CAPTURE(c.options, c.ranks);
  const ShardTraining shards = trained_in_shards(text, c, labels, place);
  const YamlNode node = parse_yaml(text, "model.yaml");
  const Model model = read_model(YamlValue(node, ""));
  const Trained alone =
      trained_on_one_rank(model, c.batch * c.ranks / c.ways, 0.2, kSteps, [&](Network& network) {
        fill_samples(network.input(), 0, input_value);
        fill_samples(*network.kernel(model.layers.size() - 1).targets(), 0, target_value);
      });
  std::vector<bool> compared;  // cuDNN uses the unbiased estimate for running variances
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& one : layer.parameters)
      compared.push_back(one.trainable || place.make == make_onednn_backend);
  }
  CHECK(shards.loss == Approx(alone.loss).epsilon(1e-5));
  REQUIRE(shards.parameters.size() == alone.parameters.size());
  double moved = 0;
  for (std::size_t k = 0; k < alone.parameters.size(); ++k) {
    REQUIRE(shards.parameters[k].size() == alone.parameters[k].size());
    CHECK(shards.parameters[k] == shards.last[k]);
    if (!compared[k]) continue;
    for (std::size_t i = 0; i < alone.parameters[k].size(); ++i) {
      moved = std::max(moved, static_cast<double>(std::abs(alone.parameters[k][i])));
      CHECK(shards.parameters[k][i] == Approx(alone.parameters[k][i]).margin(1e-5));
    }
  }
  CHECK(moved > 0);
}

std::vector<PartitionTrial> partition_trials() {
  std::vector<PartitionTrial> trials;
  const auto add = [&](const std::string& model, const char* options, int ranks, int ways,
                       const Shape& labels) {
    trials.push_back({model, {options, ranks, ways, ranks == 4 && ways == 4 ? 4 : 2}, labels});
  };
  add(kMesh, "split: 2", 2, 2, {4, 7, 6});
  add(kMesh, "split: [2, 2]", 4, 4, {4, 7, 6});
  add(kMesh, "split: 2, batch_norm: all, bucket: tensor, all_reduce: ring", 4, 2, {4, 7, 6});
  add(pools("[3, 24, 28]"), "split: 2", 2, 2, {4, 5, 6});
  add(pools("[3, 27, 25]"), "split: [2, 2]", 4, 4, {4, 6, 6});
  add(kClasses, "split: [2, 2]", 4, 4, {});
  add(kClasses, "split: 2, whole_from: conv2", 2, 2, {});
  return trials;
}

}  // namespace stepcast::test
