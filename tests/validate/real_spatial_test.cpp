#include <catch2/catch.hpp>

#include "models/layer_shapes.hpp"
#include "planned_parts.hpp"
#include "validate/cut_device.hpp"

namespace stepcast {
namespace {

constexpr int kSteps = 3;

/// A label a position: strides, batch norm, a pool that crosses the cut and one that does not, 1 x 1 filters.
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

/// Max pools whose windows cross the cut, with and without overlap, each with two readers, after zeros of a
/// relu, among which the first counts.
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

/// A class a sample: what follows the dense layer has whole samples.
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

Optimizer optimizer(double rate) {
  return {.learning_rate = rate, .momentum = 0.9};
}

/// Where element `element` of a part of a map (or of a flattened one) lies in the whole.
std::int64_t in_whole(const Shape& map, const SampleCut& cut, int place, std::int64_t element) {
  const std::vector<int> grid = grid_place(cut.parts, place);
  std::vector<Rows> rows;
  for (std::size_t i = 0; i < cut.parts.size(); ++i)
    rows.push_back(part_of(map[i + 1], cut.parts[i], grid[i]));
  std::int64_t found = 0, stride = 1;
  for (std::size_t i = map.size(); i-- > 1;) {
    found += stride * (rows[i - 1].first + element % rows[i - 1].size());
    element /= rows[i - 1].size();
    stride *= map[i];
  }
  return found + stride * element;
}

struct Where {
  const SampleCut* cut = nullptr;  ///< null: all of a sample
  int place = 0;
};

/// Fills with samples from `first` on, or with the part of them that lies at `where`.
void fill(Tensor& tensor, float (*value)(std::int64_t, std::int64_t), std::int64_t first, const Shape& map,
          const Where& where) {
  const auto all = static_cast<std::int64_t>(tensor.elements()), row = all / tensor.shape().front();
  std::vector<float> values;
  for (std::int64_t i = 0; i < all; ++i) {
    const std::int64_t element = i % row;
    values.push_back(value(first + i / row,
                           where.cut == nullptr ? element : in_whole(map, *where.cut, where.place, element)));
  }
  tensor.write(values);
}

using Parameters = std::vector<std::vector<float>>;

Parameters parameters_of(Network& network) {
  Parameters all;
  for (std::size_t i = 0; i < network.model().layers.size(); ++i) {
    for (std::size_t k = 0; k < network.model().layers[i].parameters.size(); ++k)
      all.push_back(network.kernel(i).read_parameter(k));
  }
  return all;
}

struct Trained {
  Parameters parameters;
  double loss = 0;
};

Trained trained_alone(const Model& model, std::int64_t batch) {
  set_kernel_threads(1);
  const auto backend = make_onednn_backend();
  Network network(*backend, model, {.batch = batch, .optimizer = optimizer(0.2)});
  fill(network.input(), input_value, 0, model.input, {});
  fill(*network.kernel(model.layers.size() - 1).targets(), target_value, 0, {}, {});
  for (int step = 0; step < kSteps; ++step) network.step();
  return {parameters_of(network), network.loss()};
}

struct Case {
  std::string options;
  int ranks, ways;
  std::int64_t batch;  ///< of a replica
};

/// Trains for real; the loss is summed over the ranks of all replicas.
Trained trained_cut(const std::string& text, const Case& c, const Shape& labels, Parameters& last) {
  const PlannedParts planned(c.ranks, text, "{kind: spatial, halo_overlap: false, " + c.options + "}",
                             static_cast<int>(c.batch), kSteps);
  const NetworkSharing& sharing = planned.plan.sharing;
  REQUIRE(sharing.simulated_only == "");
  const Model& model = planned.model;
  const bool whole_at_the_end = sharing.cut.whole_from < model.layers.size();
  std::vector<Trained> results(static_cast<std::size_t>(c.ranks));
  run_parts(planned, [&](int rank, std::mutex& building, const auto& run) {
    const int replica = rank / c.ways, place = rank % c.ways;
    const auto backend = make_onednn_backend();
    std::unique_lock lock(building);
    const CutNetwork cut =
        cut_network(*backend, model, sharing, place, {.optimizer = optimizer(0.2 * c.ways / c.ranks)});
    lock.unlock();
    const std::int64_t first = replica * c.batch, mine = c.batch / c.ways;
    fill(cut.network->input(), input_value, first, model.input, {&sharing.cut, place});
    Tensor& targets = *cut.network->kernel(model.layers.size() - 1).targets();
    if (whole_at_the_end) {
      fill(targets, target_value, first + place * mine, {}, {});
    } else {
      fill(targets, target_value, first, labels, {&sharing.cut, place});
    }
    const auto device = cut_device(cut, model, sharing, place);
    CHECK(run(*device).step_ends.size() == kSteps);
    results[static_cast<std::size_t>(rank)] = {parameters_of(*cut.network), cut.network->loss()};
  });
  Trained sum{results.front().parameters, 0};
  for (const Trained& one : results) sum.loss += one.loss * c.ways / c.ranks;
  last = results.back().parameters;
  return sum;
}

void check_equal(const std::string& text, const Case& c, const Shape& labels) {
  CAPTURE(c.options, c.ranks);
  Parameters last;
  const Trained cut = trained_cut(text, c, labels, last);
  const YamlNode node = parse_yaml(text, "model.yaml");
  const Trained alone = trained_alone(read_model(YamlValue(node, "")), c.batch * c.ranks / c.ways);
  CHECK(cut.loss == Approx(alone.loss).epsilon(1e-5));
  REQUIRE(cut.parameters.size() == alone.parameters.size());
  double moved = 0;
  for (std::size_t k = 0; k < alone.parameters.size(); ++k) {
    REQUIRE(cut.parameters[k].size() == alone.parameters[k].size());
    CHECK(cut.parameters[k] == last[k]);
    for (std::size_t i = 0; i < alone.parameters[k].size(); ++i) {
      moved = std::max(moved, static_cast<double>(std::abs(alone.parameters[k][i])));
      CHECK(cut.parameters[k][i] == Approx(alone.parameters[k][i]).margin(1e-5));
    }
  }
  CHECK(moved > 0);
}

}  // namespace

TEST_CASE("a mesh network whose samples are cut trains as the uncut one, to rounding",
          "[validate][training]") {
  // 26 rows in 2 and 4 parts are uneven after the strides: 13 rows in 7 + 6, 7 rows in 2 + 2 + 2 + 1.
  check_equal(kMesh,
              GENERATE(Case{"split: 1", 1, 1, 2}, Case{"split: 2", 2, 2, 2}, Case{"split: 4", 4, 4, 1},
                       Case{"split: [1, 2]", 2, 2, 2}, Case{"split: [2, 2]", 4, 4, 2},
                       Case{"split: 2, batch_norm: all, bucket: tensor, all_reduce: ring", 4, 2, 2}),
              {4, 7, 6});
}

TEST_CASE("max pools whose windows cross the cut train as the uncut ones, to rounding",
          "[validate][training]") {
  // 24 x 28, 12 x 14, 11 x 13, 5 x 6; 27 x 25, 14 x 13, 13 x 12, 6 x 6.
  const auto [input, labels] = GENERATE(std::pair<const char*, Shape>{"[3, 24, 28]", {4, 5, 6}},
                                        std::pair<const char*, Shape>{"[3, 27, 25]", {4, 6, 6}});
  CAPTURE(input);
  check_equal(pools(input),
              GENERATE(Case{"split: 2", 2, 2, 2}, Case{"split: 4", 4, 4, 2}, Case{"split: [1, 2]", 2, 2, 2},
                       Case{"split: [2, 2]", 4, 4, 2}, Case{"split: 2, batch_norm: all", 4, 2, 2}),
              labels);
}

TEST_CASE("a classifier whose samples are cut and then dealt out trains as the uncut one, to rounding",
          "[validate][training]") {
  check_equal(
      kClasses,
      GENERATE(Case{"split: 2", 2, 2, 4}, Case{"split: [2, 2]", 4, 4, 4},
               Case{"split: 2, whole_from: conv2", 2, 2, 2}, Case{"split: 2, overlap: false", 4, 2, 2}),
      {});
}

}  // namespace stepcast
