#include <catch2/catch.hpp>

#include "planned_parts.hpp"
#include "validate/checkpoint.hpp"
#include "validate/tensor_device.hpp"

namespace stepcast {
namespace {

constexpr int kSteps = 4;

/// Two blocks, four heads; 10 words, which four ranks cannot share evenly.
const std::string kStack = R"(
name: stack
source: test
transformer_stack: {layers: 2, width: 16, heads: 4, sequence: 6, vocabulary: 10}
)";

/// A class a sample: dense layers that nobody shares before and after the blocks.
const std::string kClasses = R"(
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

Optimizer optimizer() {
  return {.learning_rate = 0.05, .momentum = 0.9};
}

/// Samples from `first` on.
void fill(Network& network, const Model& model, std::int64_t first) {
  const auto write = [first](Tensor& tensor, const auto& value) {
    const auto row = static_cast<std::int64_t>(tensor.elements()) / tensor.shape().front();
    std::vector<float> values;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(tensor.elements()); ++i)
      values.push_back(value(first + i / row, i % row));
    tensor.write(values);
  };
  const std::int64_t classes = model.layers.back().input.back();
  write(network.input(), input_value);
  write(*network.kernel(model.layers.size() - 1).targets(), [classes](std::int64_t sample, std::int64_t row) {
    return static_cast<float>((7 * sample + 3 * row) % classes);
  });
}

struct Trained {
  Parameters parameters;
  double loss = 0;
};

/// The whole network on one rank; its optimizer takes the mean over the mini-batch.
Trained trained_alone(const Model& model, std::int64_t batch) {
  set_kernel_threads(1);
  const auto backend = make_onednn_backend();
  Network network(*backend, model, {.batch = batch, .optimizer = optimizer()});
  fill(network, model, 0);
  for (int step = 0; step < kSteps; ++step) network.step();
  return {read_parameters(network), network.loss()};
}

struct Case {
  std::string options;
  int ranks, ways;
  std::int64_t batch;  ///< of a replica
};

/// Of every rank.
std::vector<Trained> trained_shared(const PlannedParts& planned, const Case& c) {
  const NetworkSharing& sharing = planned.plan.sharing;
  std::vector<Trained> results(static_cast<std::size_t>(c.ranks));
  run_parts(planned, [&](int rank, std::mutex& building, const auto& run) {
    const auto backend = make_onednn_backend();
    std::unique_lock lock(building);
    const SharedNetwork shared =
        shared_network(*backend, planned.model, sharing, rank % c.ways, {.optimizer = optimizer()});
    lock.unlock();
    DeviceLearning learning;
    learning.rate.base = optimizer().learning_rate;
    learning.summed = planned.plan.summed_gradients;
    std::int64_t turn = 0;
    learning.next_batch = [&] {
      fill(*shared.network, planned.model,
           rank / c.ways * c.batch + turn++ % sharing.micro_batches * sharing.micro_batch);
    };
    const auto device = tensor_device(shared, learning);
    CHECK(run(*device).step_ends.size() == kSteps);
    results[static_cast<std::size_t>(rank)] = {read_parameters(*shared.network), shared.network->loss()};
  });
  return results;
}

void check_close(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(2e-5));
}

}  // namespace

TEST_CASE("a transformer whose layers are shared trains as the uncut one, to rounding",
          "[validate][training]") {
  const std::string text = GENERATE(kStack, kClasses);
  const auto c = GENERATE(Case{"ways: 1", 1, 1, 4}, Case{"ways: 2", 2, 2, 4}, Case{"ways: 4", 4, 4, 2},
                          Case{"ways: 2, halo_overlap: false, overlap: false", 2, 2, 2},
                          Case{"ways: 2, bucket: tensor, all_reduce: ring", 4, 2, 2},
                          Case{"ways: 2, accumulation: 2", 2, 2, 4},
                          Case{"ways: 2, recompute: true, halo_overlap: false", 2, 2, 2});
  CAPTURE(c.options, c.ranks);
  const PlannedParts planned(c.ranks, text, "{kind: tensor, " + c.options + "}", static_cast<int>(c.batch),
                             kSteps);
  REQUIRE(planned.plan.sharing.simulated_only == "");
  const int replicas = c.ranks / c.ways;
  const Trained alone = trained_alone(planned.model, c.batch * replicas);
  const std::vector<Trained> all = trained_shared(planned, c);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const SharedPart part = shared_part(planned.model, planned.plan.sharing, static_cast<int>(rank) % c.ways);
    std::size_t next = 0;
    for (std::size_t i = 0; i < planned.model.layers.size(); ++i) {
      for (std::size_t k = 0; k < planned.model.layers[i].parameters.size(); ++k, ++next)
        check_close(all[rank].parameters.at(next), own_part(alone.parameters.at(next), part, i, k));
    }
  }
}

TEST_CASE("ranks that share the classes of a loss know the whole loss", "[validate][training]") {
  const Case c = GENERATE(Case{"ways: 2", 2, 2, 4}, Case{"ways: 4", 4, 4, 4});
  const PlannedParts planned(c.ranks, kStack, "{kind: tensor, " + c.options + "}", static_cast<int>(c.batch),
                             kSteps);
  const Trained alone = trained_alone(planned.model, c.batch);
  for (const Trained& one : trained_shared(planned, c)) CHECK(one.loss == Approx(alone.loss).epsilon(1e-5));
}

TEST_CASE("the parts of all ranks make up the parameters of the whole network", "[validate]") {
  const int ways = GENERATE(1, 2, 4);
  const PlannedParts planned(ways, kStack, "{kind: tensor, ways: " + std::to_string(ways) + "}", 4, 1);
  const Model& model = planned.model;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t k = 0; k < model.layers[i].parameters.size(); ++k) {
      std::vector<float> whole, again(static_cast<std::size_t>(model.layers[i].parameters[k].elements()));
      for (std::size_t element = 0; element < again.size(); ++element)
        whole.push_back(static_cast<float>(element + 1));
      for (int place = 0; place < ways; ++place) {
        const SharedPart part = shared_part(model, planned.plan.sharing, place);
        put_back(own_part(whole, part, i, k), part, i, k, again);
      }
      CHECK(again == whole);
    }
  }
}

TEST_CASE("shared networks that kernels cannot run are refused with the reason", "[validate]") {
  const auto why = [](const std::string& text, const std::string& options) {
    const PlannedParts planned(2, text, "{kind: tensor, ways: 2, " + options + "}", 4, 1);
    return planned.plan.sharing.simulated_only;
  };
  CHECK(why(kStack, "halo_overlap: false") == "");
  CHECK(why(kStack, "precision: mixed") == "activations of 2 bytes");
  CHECK(why(R"(
name: drops
source: test
input: [8]
layers:
  - {name: drop, kind: dropout, rate: 0.1}
  - {name: expand, kind: dense, units: 8}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: loss, kind: mean_squared_error}
)",
            "recompute: true") == "recomputation of dropout, which would drop others the second time");
  CHECK(why(R"(
name: drops
source: test
input: [8]
layers:
  - {name: expand, kind: dense, units: 8}
  - {name: gelu, kind: gelu}
  - {name: drop, kind: dropout, rate: 0.1}
  - {name: contract, kind: dense, units: 8}
  - {name: loss, kind: mean_squared_error}
)",
            "overlap: true") == "layer drop (dropout) reads what other devices have");
}

}  // namespace stepcast
