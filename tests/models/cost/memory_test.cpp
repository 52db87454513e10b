#include "models/cost/memory.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/cost/memory_options.hpp"
#include "models/cost/step_memory.hpp"
#include "models/loader.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

Device shipped_device(const std::string& name) {
  return load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", name);
}

double gigabytes(Bytes bytes) {
  return bytes.value / 1e9;
}

Bytes per_sample(const Memory& memory) {
  return memory.activations + memory.error_signals + memory.input;
}

/// The network dense 8 -> 8, relu, dense 8 -> 4, loss, with outputs of 8, 8, 4 and 1 elements and an input
/// of 8.
Model small_model() {
  return model_of(
      "{name: m, source: s, input: [8], layers: [{name: a, kind: dense, units: 8, bias: false},"
      "{name: b, kind: relu}, {name: c, kind: dense, units: 4, bias: false}, {name: l, kind: "
      "mean_squared_error}]}");
}

}  // namespace

TEST_CASE("every output and its error signal are held, and the input twice", "[models]") {
  MemoryOptions options;
  options.batch = 10;
  const Memory memory = training_memory(small_model(), options);
  CHECK(memory.weights.value == 4 * 96);
  CHECK(memory.gradients.value == 4 * 96);
  CHECK(memory.optimizer_state.value == 4 * 96);
  CHECK(memory.activations.value == 4 * 10 * 21);
  CHECK(memory.error_signals.value == 4 * 10 * (21 + 8));
  CHECK(memory.input.value == 4 * 10 * 8);
  CHECK(memory.total().value == 4 * (3 * 96 + 10 * (21 + 29 + 8)));
}

TEST_CASE("each memory option has its documented effect", "[models]") {
  MemoryOptions options;
  SECTION("in place, ReLU has no memory of its own") {
    options.activations = MemoryOptions::Activations::in_place;
    CHECK(training_memory(small_model(), options).activations.value == 4 * 13);
  }
  SECTION("freed early, only the error signals around one layer live") {
    options.error_signals = MemoryOptions::ErrorSignals::freed;
    CHECK(training_memory(small_model(), options).error_signals.value == 4 * 16);
  }
  SECTION("mixed precision halves activations and gradients and adds a master copy") {
    options.precision = MemoryOptions::Precision::mixed;
    const Memory memory = training_memory(small_model(), options);
    CHECK(memory.weights.value == 6 * 96);
    CHECK(memory.gradients.value == 2 * 96);
    CHECK(memory.optimizer_state.value == 4 * 96);
    CHECK(memory.activations.value == 2 * 21);
  }
  SECTION("two devices that share each sample hold half the activations and all weights") {
    options.split = 2;
    const Memory memory = training_memory(small_model(), options);
    CHECK(memory.weights.value == 4 * 96);
    CHECK(memory.activations.value == 4 * 10.5);
  }
}

TEST_CASE("modules with parameters of 2 B keep every output in 2 B, of which autocast keeps some in 4",
          "[models]") {
  const Model model = shipped_model("gpt2-small");
  MemoryOptions options;
  options.framework = MemoryOptions::Framework::pytorch;
  options.attention = MemoryOptions::Attention::flash;
  options.precision = MemoryOptions::Precision::mixed;
  const Memory cast = training_memory(model, options);
  CHECK(std::ranges::count(output_widths(model, options), 4.0) > 12);
  options.half_parameters = true;
  const Memory half = training_memory(model, options);
  CHECK(std::ranges::count(output_widths(model, options), 4.0) == 0);
  CHECK(half.activations < cast.activations);
  CHECK(half.weights == cast.weights);
  options.zero = MemoryOptions::Zero::parameters;
  options.zero_ways = 8;
  CHECK(training_memory(model, options).weights.value ==
        Approx(4.0 / 8 * static_cast<double>(all_parameters(model))));
}

TEST_CASE("a layer in place does not overwrite an output that another layer reads", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [8], layers: [{name: a, kind: dense, units: 8}, {name: b, kind: relu},"
      "{name: c, kind: add, inputs: [b, a]}, {name: l, kind: mean_squared_error}]}");
  MemoryOptions options;
  options.activations = MemoryOptions::Activations::in_place;
  CHECK(kept_activations(model, options) == 8 + 8 + 1);  // b keeps its own memory, c overwrites it
}

TEST_CASE("optimizers keep no, one or two copies of the parameters", "[models]") {
  using Optimizer = MemoryOptions::OptimizerState;
  const auto copies = GENERATE(values<std::pair<Optimizer, int>>({{Optimizer::sgd, 0},
                                                                  {Optimizer::momentum, 1},
                                                                  {Optimizer::adagrad, 1},
                                                                  {Optimizer::rmsprop, 1},
                                                                  {Optimizer::adam, 2},
                                                                  {Optimizer::adamw, 2}}));
  MemoryOptions options;
  options.optimizer = copies.first;
  CHECK(training_memory(small_model(), options).optimizer_state.value == copies.second * 4 * 96);
}

TEST_CASE("a mesh-1k sample takes 11.7 GB, so that one fits a V100 and two do not", "[models]") {
  const Model model = shipped_model("mesh-1k");
  const Device v100 = shipped_device("v100-sxm2-16gb");
  MemoryOptions options;
  CHECK(gigabytes(per_sample(training_memory(model, options))) == Approx(11.7).margin(0.05));
  CHECK(fits(training_memory(model, options), v100));
  options.batch = 2;
  CHECK_FALSE(fits(training_memory(model, options), v100));
}

TEST_CASE("a mesh-2k sample takes 17.0 GB: too much for one V100, half of it for each of two", "[models]") {
  const Model model = shipped_model("mesh-2k");
  const Device v100 = shipped_device("v100-sxm2-16gb");
  MemoryOptions options;
  CHECK(gigabytes(per_sample(training_memory(model, options))) == Approx(17.0).margin(0.05));
  CHECK(gigabytes(training_memory(model, options).total()) == Approx(17.13).margin(0.05));
  CHECK_FALSE(fits(training_memory(model, options), v100));
  options.split = 2;
  CHECK(gigabytes(per_sample(training_memory(model, options))) == Approx(8.5).margin(0.03));
  CHECK(fits(training_memory(model, options), v100));
}

TEST_CASE("mesh-2k needs 9.7 GB if error signals are freed early", "[models]") {
  MemoryOptions options;
  options.error_signals = MemoryOptions::ErrorSignals::freed;
  const Memory memory = training_memory(shipped_model("mesh-2k"), options);
  CHECK(gigabytes(memory.total()) == Approx(9.7).margin(0.05));
  CHECK(fits(memory, shipped_device("v100-sxm2-16gb")));
}

TEST_CASE("ResNet-50 at batch 128 fits a V100 16 GB only in place and freed early, as it was measured there",
          "[models]") {
  MemoryOptions options;
  options.batch = 128;
  const Model model = shipped_model("resnet50");
  const Device v100 = shipped_device("v100-sxm2-16gb");
  CHECK_FALSE(fits(training_memory(model, options), v100));
  options.activations = MemoryOptions::Activations::in_place;
  options.error_signals = MemoryOptions::ErrorSignals::freed;
  CHECK(fits(training_memory(model, options), v100));
}

TEST_CASE("a margin adds its share to the total", "[models]") {
  Memory memory;
  memory.weights = {100};
  Device device;
  device.usable_memory = {105};
  CHECK(fits(memory, device, 0.05));
  CHECK_FALSE(fits(memory, device, 0.06));
}

TEST_CASE("recomputation keeps checkpoints and one segment", "[models]") {
  // Nine equal layers, of which the third and the sixth are checkpoints, and the middle segment without its
  // last layer.
  std::string text = "{name: m, source: s, input: [8], layers: [";
  for (int i = 0; i < 8; ++i) {
    const std::string name = "l" + std::to_string(i), before = "l" + std::to_string(i - 1);
    text += i % 3 == 2 ? "{name: " + name + ", kind: add, inputs: [" + before + ", " + before + "]},"
                       : "{name: " + name + ", kind: gelu},";
  }
  const Model model = model_of(text + "{name: loss, kind: mean_squared_error}]}");
  MemoryOptions options;
  CHECK(kept_activations(model, options) == 8 * 8 + 1);
  options.recomputation = MemoryOptions::Recomputation::blocks;
  CHECK(kept_activations(model, options) == 2 * 8 + 2 * 8 + 1);
}

TEST_CASE("recomputation of blocks also keeps outputs that a shortcut reads after a checkpoint", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [8], layers: [{name: a, kind: gelu}, {name: b, kind: gelu},"
      "{name: c, kind: add, inputs: [b, b]}, {name: d, kind: gelu}, {name: e, kind: add, inputs: [d, a]},"
      "{name: f, kind: gelu}, {name: loss, kind: mean_squared_error}]}");
  MemoryOptions options;
  options.recomputation = MemoryOptions::Recomputation::blocks;
  // Saved: c and e, and a, which e reads after the checkpoint c. Largest segment: f and the loss.
  CHECK(kept_activations(model, options) == 3 * 8 + 9);
}

TEST_CASE("recomputation saves memory on deep networks", "[models]") {
  for (const char* name : {"resnet50", "gpt2-small", "vgg16"}) {
    const Model model = shipped_model(name);
    MemoryOptions all, blocks;
    blocks.recomputation = MemoryOptions::Recomputation::blocks;
    CAPTURE(name);
    CHECK(kept_activations(model, blocks) < 0.7 * kept_activations(model, all));
  }
}

TEST_CASE("the ZeRO stages hold the memory of the paper for 7.5 billion parameters on 64 devices",
          "[models]") {
  // Rajbhandari et al., SC 2020, figure 1: mixed precision and Adam; 120, 31.4, 16.6 and 1.9 GB.
  Model model;
  model.input = {1};
  model.layers.resize(1000);
  for (Layer& layer : model.layers) {
    layer.inputs = {-1};
    layer.input = layer.output = {1};
    layer.parameters = {{"weight", {7'500'000}}};
  }
  MemoryOptions options;
  options.precision = MemoryOptions::Precision::mixed;
  options.optimizer = MemoryOptions::OptimizerState::adam;
  options.zero_ways = 64;
  const auto states = [&](MemoryOptions::Zero zero) {
    options.zero = zero;
    const Memory memory = training_memory(model, options);
    return gigabytes(memory.weights + memory.gradients + memory.optimizer_state);
  };
  CHECK(states(MemoryOptions::Zero::none) == Approx(120).margin(0.05));
  CHECK(states(MemoryOptions::Zero::optimizer_state) == Approx(31.4).margin(0.05));
  CHECK(states(MemoryOptions::Zero::gradients) == Approx(16.6).margin(0.05));
  CHECK(states(MemoryOptions::Zero::parameters) == Approx(1.9).margin(0.05));
  CHECK(training_memory(model, options).gathered.value == 2 * 7'500'000);
}

TEST_CASE("a pipeline stage holds the activations of every micro-batch in flight", "[models]") {
  MemoryOptions one, four;
  four.in_flight = 4;
  const Memory a = training_memory(small_model(), one), b = training_memory(small_model(), four);
  CHECK(b.activations.value == 4 * a.activations.value);
  CHECK(b.input.value == 4 * a.input.value);
  CHECK(b.error_signals.value == a.error_signals.value);
  CHECK(b.weights.value == a.weights.value);
}

TEST_CASE("with swapping the device holds the largest working set of a step", "[models]") {
  MemoryOptions options;
  options.swap = true;
  const Memory memory = training_memory(small_model(), options);
  CHECK(memory.activations.value == 4 * 16);  // a and b, while b runs forward
  CHECK(memory.swapped.value == 4 * (21 - 16));
  CHECK(memory.error_signals.value == 4 * 29);
  SECTION("freed, error signals are those of that moment, not of their own worst") {
    options.error_signals = MemoryOptions::ErrorSignals::freed;
    const WorkingSet worst = swapped_working_set(small_model(), options);
    CHECK(worst.activations == 8);     // b, which the backward pass of b reads
    CHECK(worst.error_signals == 16);  // of b and a
  }
  SECTION("in place, one copy of b waits, and the next layer's pass needs it too") {
    options.activations = MemoryOptions::Activations::in_place;
    CHECK(swapped_working_set(small_model(), options).activations == 13);  // b, c and the loss, going back
  }
  CHECK_FALSE(fits(training_memory(shipped_model("mesh-2k"), {}), shipped_device("v100-sxm2-16gb")));
  CHECK(fits(training_memory(shipped_model("mesh-2k"), options), shipped_device("v100-sxm2-16gb")));
}

TEST_CASE("an output that is read again later stays in memory, forward and backward", "[models]") {
  // a -> b -> c -> d = c + a: a is read by b and by d.
  const Model model = model_of(
      "{name: m, source: s, input: [8], layers: [{name: a, kind: dense, units: 8}, {name: b, kind: dense, "
      "units: 8}, {name: c, kind: dense, units: 8}, {name: d, kind: add, inputs: [c, a]}, {name: l, kind: "
      "mean_squared_error}]}");
  MemoryOptions options;
  options.swap = true;
  CHECK(swapped_working_set(model, options).activations == 3 * 8);  // a, b, c; then a, c, d
  CHECK(copied_elements(model, options) ==
        std::vector<double>{0, 8, 8, 0, 8});  // the backward pass of the addition d reads no values
}

TEST_CASE("an overwritten output is copied once, after its last change", "[models]") {
  MemoryOptions options;
  CHECK(copied_elements(small_model(), options) ==
        std::vector<double>{0, 0, 8, 4});  // the backward pass of b does not read a
  options.activations = MemoryOptions::Activations::in_place;
  CHECK(copied_elements(small_model(), options) == std::vector<double>{0, 0, 8, 4});
  const Model recurrent = model_of(
      "{name: m, source: s, input: [2, 3], layers: [{name: a, kind: lstm, hidden: 4}, {name: l, kind: "
      "mean_squared_error}]}");
  CHECK(copied_elements(recurrent, options) == std::vector<double>{5 * 2 * 4, 2 * 4});  // gates and cells
}

TEST_CASE("VGG-16 with 256 samples fits 12 GB with its activations on the host, as it was trained",
          "[models]") {
  MemoryOptions options;
  options.batch = 256;
  options.activations = MemoryOptions::Activations::in_place;
  options.error_signals = MemoryOptions::ErrorSignals::freed;
  const Model model = shipped_model("vgg16");
  CHECK(gigabytes(training_memory(model, options).total()) == Approx(23.8).margin(0.05));
  options.swap = true;
  // During the backward pass of conv1_2 its input and two error signals are live: 64 x 224 x 224 elements
  // each.
  const WorkingSet worst = swapped_working_set(model, options);
  CHECK(worst.total() == 3.0 * 64 * 224 * 224);
  CHECK(gigabytes(training_memory(model, options).total()) == Approx(11.7).margin(0.05));
}

TEST_CASE("why_not names the needed and the usable memory, and the largest parts", "[models][errors]") {
  const Device v100 = shipped_device("v100-sxm2-16gb");
  const Model model = shipped_model("mesh-2k");
  MemoryOptions options;
  CHECK(why_not(training_memory(model, options), v100) ==
        "needs 17.1 GB a device, 16.5 GB usable: 0.6 GB too much; error signals 8.5 GB, activations 8.2 GB, "
        "input "
        "0.3 GB");
  options.split = 2;
  CHECK(why_not(training_memory(model, options), v100).empty());
}
