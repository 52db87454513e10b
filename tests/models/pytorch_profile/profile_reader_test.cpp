#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/error.hpp"
#include "models/pytorch_profile/operators.hpp"
#include "models/pytorch_profile/profile.hpp"
#include "read_text.hpp"
#include "tests/models/pytorch_profile/made_up_profile.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

/// A convolution, a ReLU and a dense layer with a loss: the passes of one micro-batch, in 400 us.
void add_passes(Events& events, double t, int s, bool shapes, bool kernels) {
  const auto kernel = [&](const char* name, int id, double at, double length) {
    if (kernels) events.kernel(name, id, at, length);
  };
  kernel("sgemm_conv_fprop",
         events.host("aten::conv2d", t + 10, 20, s, false, shapes ? "[[2,3,8,8],[4,3,3,3],[4]]" : ""), t + 11,
         50);
  kernel("clamp", events.host("aten::relu", t + 40, 10, s + 1, false, shapes ? "[[2,4,8,8]]" : ""), t + 41,
         5);
  events.host("aten::flatten", t + 55, 2, s + 2);
  const int linear =
      events.host("aten::linear", t + 60, 20, s + 3, false, shapes ? "[[2,256],[10,256],[10]]" : "");
  events.host("aten::addmm", t + 65, 10, s + 4);
  kernel("sgemm", linear, t + 66, 20);
  kernel("softmax", events.host("aten::cross_entropy_loss", t + 90, 10, s + 5), t + 91, 3);
  kernel("nll", events.host("CrossEntropyLossBackward0", t + 200, 10, s + 5, true), t + 201, 2);
  events.host("AddmmBackward0", t + 220, 40, s + 4, true);
  kernel("sgemm_data", events.host("aten::mm", t + 222, 10), t + 223, 21);
  kernel("sgemm_weights", events.host("aten::mm", t + 240, 10), t + 241, 22);
  kernel("threshold", events.host("ReluBackward0", t + 270, 10, s + 1, true), t + 271, 7);
  events.host("ConvolutionBackward0", t + 300, 40, s, true);
  kernel("cudnn_engine", events.host("aten::convolution_backward", t + 305, 30), t + 306, 60);
}

/// A step of 1000 us with one or two micro-batches and an optimizer.
void add_step(Events& events, int number, bool shapes, bool kernels = true, int micro_batches = 1) {
  const double t = 1000.0 * number;
  events.range("ProfilerStep#" + std::to_string(number), t, 999);
  for (int i = 0; i < micro_batches; ++i)
    add_passes(events, t + 400 * i, 100 * number + 50 * i, shapes, kernels);
  events.range("Optimizer.step#SGD.step", t + 850, 100);
  const int update = events.host("aten::_foreach_add_", t + 860, 50);
  if (kernels) events.kernel("multi_tensor_apply", update, t + 861, 10);
}

std::string two_steps(bool shapes, bool kernels = true) {
  Events events;
  add_step(events, 1, shapes, kernels);
  add_step(events, 2, shapes, kernels);
  return events.text();
}

const char* const kModel = R"(
name: tiny
source: test
input: [3, 8, 8]
layers:
  - {name: conv, kind: convolution, filters: 4, kernel: 3, pad: 1}
  - {name: relu, kind: relu}
  - {name: flat, kind: reshape, shape: [256]}
  - {name: fc, kind: dense, units: 10}
  - {name: loss, kind: softmax_cross_entropy}
)";

Trace trace_of_profile(const std::string& text, const std::string& model_text = kModel) {
  const ProfileFile file(text);
  const Profile profile = read_profile(file.name());
  const Attribution all = attribute(profile);
  const Model model = model_of(model_text);
  const auto& operators = all.steps.front().operators;
  return profile_trace(profile, all, {model, match_layers("p", operators, model, recorded_batch(operators))},
                       2);
}

std::string refusal(const std::string& text) {
  try {
    trace_of_profile(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

double us(const PassSamples& pass, std::size_t step = 0) {
  return 1e6 * pass.seconds.at(step);
}

}  // namespace

TEST_CASE("a profile gives every kernel's time to its layer and pass", "[models]") {
  for (const bool shapes : {false, true}) {
    const Trace trace = trace_of_profile(two_steps(shapes));
    REQUIRE(trace.layers.size() == 5);
    CHECK(trace.device == "Test GPU");
    CHECK(trace.layers[0].forward.seconds.size() == 2);
    for (const std::size_t step : {0U, 1U}) {
      CHECK(us(trace.layers[0].forward, step) == Approx(50));
      CHECK(us(trace.layers[1].forward, step) == Approx(5));
      CHECK(us(trace.layers[1].backward_data, step) == Approx(7));
      CHECK(us(trace.layers[3].backward_data, step) == Approx(21));
      CHECK(us(trace.layers[3].backward_weights, step) == Approx(22));
      CHECK(us(trace.layers[4].forward, step) == Approx(3));
      CHECK(us(trace.layers[4].backward_data, step) == Approx(2));
    }
    CHECK(step_time(trace).value == Approx(200e-6));
  }
}

TEST_CASE(
    "the first layer has no gradient of its input, and the time of a foreach optimizer is divided among the "
    "layers",
    "[models]") {
  const Trace trace = trace_of_profile(two_steps(false));
  CHECK(trace.layers[0].backward_data.seconds.empty());
  CHECK(us(trace.layers[0].backward_weights) == Approx(60));
  const double parameters = 4 * 27 + 4 + 2560 + 10;
  CHECK(us(trace.layers[0].update) == Approx(10 * (4 * 27 + 4) / parameters));
  CHECK(us(trace.layers[3].update) == Approx(10 * 2570 / parameters));
  REQUIRE_FALSE(trace.flags.empty());
  CHECK_THAT(trace.flags.back(), Contains("in proportion to their parameters"));
}

TEST_CASE("operators' own times take the place of kernels in a profile of a CPU", "[models]") {
  const Trace trace = trace_of_profile(two_steps(true, false));
  CHECK(trace.device == "cpu");
  CHECK(us(trace.layers[0].forward) == Approx(20));
  CHECK(us(trace.layers[3].forward) == Approx(22));  // linear with its addmm, and flatten before it
  CHECK(us(trace.layers[3].backward_weights) == Approx(10));
}

TEST_CASE("a profile without sequence numbers, of PyTorch without Kineto, is read in the order of the nodes",
          "[models]") {
  const std::string text =
      R"([{"name":"ProfilerStep#1","ph":"X","ts":0,"dur":900,"tid":1,"pid":"CPU functions","args":{}})";
  std::string events;
  const auto add = [&](const char* name, int start, int length) {
    events += R"(,{"name":")" + std::string(name) + R"(","ph":"X","ts":)" + std::to_string(start) +
              R"(,"dur":)" + std::to_string(length) + R"(,"tid":1,"pid":"CPU functions","args":{}})";
  };
  add("aten::conv2d", 10, 40), add("aten::convolution", 11, 38), add("aten::_convolution", 12, 36);
  add("aten::relu", 60, 6);
  add("aten::linear", 80, 30), add("aten::addmm", 85, 20);
  add("aten::cross_entropy_loss", 120, 20), add("aten::nll_loss", 125, 10);
  add("autograd::engine::evaluate_function: NllLossBackward0", 200, 10), add("NllLossBackward0", 202, 6);
  add("autograd::engine::evaluate_function: AddmmBackward0", 220, 40), add("AddmmBackward0", 222, 30);
  add("aten::mm", 224, 10), add("aten::mm", 240, 8);
  add("autograd::engine::evaluate_function: ReluBackward0", 270, 10), add("ReluBackward0", 272, 6);
  add("autograd::engine::evaluate_function: ConvolutionBackward0", 300, 50),
      add("ConvolutionBackward0", 302, 45);
  add("aten::convolution_backward", 304, 40);
  add("Optimizer.step#SGD.step", 400, 50), add("aten::add_", 410, 20);
  const Trace trace = trace_of_profile(text + events + "]");
  CHECK(us(trace.layers[0].forward) == Approx(40));
  CHECK(us(trace.layers[0].backward_weights) == Approx(50));
  CHECK(us(trace.layers[1].backward_data) == Approx(10));
  CHECK(us(trace.layers[3].backward_weights) == Approx(8));
  CHECK(step_time(trace).value == Approx((40 + 6 + 30 + 20 + 10 + 40 + 10 + 50 + 20) * 1e-6));
}

TEST_CASE("nodes of no microsecond, and operators that overlap by one, keep their places", "[models]") {
  std::string events;
  const auto add = [&](const char* name, int start, int length) {
    events += R"(,{"name":")" + std::string(name) + R"(","ph":"X","ts":)" + std::to_string(start) +
              R"(,"dur":)" + std::to_string(length) + R"(,"tid":1,"pid":"CPU functions","args":{}})";
  };
  const auto add_step = [&](const char* name, int start, bool rounded) {
    add(name, start, 900);
    add("aten::conv2d", start + 10, 40), add("aten::convolution", start + 11, rounded ? 40 : 38);
    add("aten::add_", start + 55, 6), add("aten::batch_norm", start + (rounded ? 60 : 61), 20);
    add("aten::native_batch_norm", start + 63, 15);
    add("aten::add", start + 90, 10), add("aten::cross_entropy_loss", start + 120, 20);
    add("aten::nll_loss", start + 125, 10);
    const auto add_node = [&](const std::string& node, int at, int length) {
      add(("autograd::engine::evaluate_function: " + node).c_str(), start + at, length);
      const int own = std::max(0, length - 2);
      add(node.c_str(), start + at + length - own, own);
    };
    add_node("NllLossBackward0", 200, 10), add_node("AddBackward0", 220, rounded ? 1 : 3);
    add_node("NativeBatchNormBackward0", 240, 20), add_node("ConvolutionBackward0", 300, 50);
  };
  const auto operators = [&] {
    const ProfileFile file("[" + events.substr(1) + "]");
    std::vector<std::string> names;
    const Attribution all = attribute(read_profile(file.name()));
    for (const NetworkOperator& one : all.steps.back().operators) names.push_back(one.name);
    return names;
  };
  add_step("ProfilerStep#1", 0, false);
  add_step("ProfilerStep#2", 1000, true);
  CHECK(operators() == std::vector<std::string>{"aten::conv2d", "aten::batch_norm", "aten::add",
                                                "aten::cross_entropy_loss"});
}

TEST_CASE("a step that sums the gradients of two micro-batches is two steps, each with the whole update",
          "[models]") {
  Events events;
  for (const int step : {1, 2}) add_step(events, step, false, true, 2);
  const ProfileFile file(events.text());
  CHECK(attribute(read_profile(file.name())).micro_batches == 2);
  const Trace trace = trace_of_profile(events.text());
  CHECK(trace.layers[0].forward.seconds.size() == 4);
  for (const std::size_t step : {0U, 3U}) {
    CHECK(us(trace.layers[0].forward, step) == Approx(50));
    CHECK(us(trace.layers[3].backward_weights, step) == Approx(22));
  }
  CHECK(step_time(trace).value == Approx(200e-6));
  CHECK_THAT(trace.notes.back(), Contains("2 micro-batches"));
}

TEST_CASE("steps that ran other operators than most are left out, and two halves are refused", "[models]") {
  const auto profile = [](int same) {
    Events events;
    for (int step = 1; step <= same; ++step) add_step(events, step, false);
    add_step(events, same + 1, false);
    events.host("aten::tanh", 1000.0 * (same + 1) + 105, 2, 100 * (same + 1) + 6);
    events.host("TanhBackward0", 1000.0 * (same + 1) + 195, 2, 100 * (same + 1) + 6, true);
    return events.text();
  };
  const Trace trace = trace_of_profile(profile(2));
  CHECK(trace.layers[0].forward.seconds.size() == 2);
  CHECK_THAT(trace.notes.back(), Contains("1 of 3 steps ran other operators"));
  CHECK_THAT(refusal(profile(1)), Contains("ProfilerStep#1 and ProfilerStep#2 differ"));
}

TEST_CASE("times, ids and numbers of autograd nodes may be texts", "[models]") {
  std::string text = two_steps(true);
  for (const std::string key :
       {"\"ts\":", "\"dur\":", "\"correlation\":", "\"External id\":", "\"Sequence number\":"}) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      const std::size_t begin = at + key.size(), end = text.find_first_of(",}", begin);
      text.insert(end, "\"");
      text.insert(begin, "\"");
    }
  }
  const Trace trace = trace_of_profile(text), numbers = trace_of_profile(two_steps(true));
  REQUIRE(trace.layers.size() == numbers.layers.size());
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    CHECK(trace.layers[i].forward.seconds == numbers.layers[i].forward.seconds);
    CHECK(trace.layers[i].backward_weights.seconds == numbers.layers[i].backward_weights.seconds);
  }
}

TEST_CASE("a range with a number of a node of the backward pass is no layer", "[models]") {
  std::string text = two_steps(false);
  const std::string range =
      R"("cat":"user_annotation","name":"ProfilerStep#1","tid":1,"pid":1,"ts":1000.000000,"dur":999.000000,"args":{)";
  REQUIRE(text.find(range) != std::string::npos);
  text.insert(text.find(range) + range.size(), R"("Sequence number":100,"Fwd thread id":0)");
  CHECK(step_time(trace_of_profile(text)).value == Approx(200e-6));
}

TEST_CASE("a measured layer of a network is one operator of any kind", "[models]") {
  std::string model = kModel;
  model.replace(model.find("kind: relu"), 10, "kind: measured, output: [4, 8, 8]");
  const Trace trace = trace_of_profile(two_steps(true), model);
  CHECK(us(trace.layers[1].forward) == Approx(5));
  CHECK(us(trace.layers[1].backward_data) == Approx(7));
}

TEST_CASE("a profile that does not match the network names the first operator that differs", "[models]") {
  std::string model = kModel;
  model.replace(model.find("kind: relu"), 10, "kind: tanh");
  CHECK_THROWS_WITH(
      trace_of_profile(two_steps(false), model),
      "p: does not match model tiny: operator 2 of the forward pass: expected layer relu (tanh), got "
      "aten::relu");
  model = kModel;
  model.replace(model.find("units: 10"), 9, "units: 11");
  CHECK_THROWS_WITH(trace_of_profile(two_steps(true), model),
                    Contains("operator 3") && Contains("layer fc (dense)"));
}

TEST_CASE("names of products say their precision", "[models]") {
  CHECK(kernel_precision("nvjet_sm90_tst_192x192_64x3_2x1_v_bz_coopB_NNN") == "bf16");
  CHECK(kernel_precision("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNN") == "f16");
  CHECK(kernel_precision("nvjet_sm90_") == "");
  CHECK(kernel_precision("cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1") == "bf16");
  CHECK(kernel_precision("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn") == "f16");
  CHECK(kernel_precision("cutlass_80_tensorop_s1688gemm_128x256_32x3_tn_align2") == "tf32");
}

TEST_CASE("a profile without what a trace needs is refused in one line", "[models]") {
  Events none;
  none.host("aten::relu", 10, 5);
  CHECK_THAT(refusal(none.text()), Contains("has no steps"));
  Events inference;
  inference.range("ProfilerStep#1", 0, 100);
  inference.host("aten::relu", 10, 5, 3);
  CHECK_THAT(refusal(inference.text()), Contains("inference"));
  Events gpus;
  add_step(gpus, 1, false);
  gpus.kernel("other", 1, 1020, 5, 1);
  CHECK_THAT(refusal(gpus.text()), Contains("2 GPUs"));
  Events compiled;
  add_step(compiled, 1, false);
  compiled.host("CompiledFunction", 1001, 5, 99);
  compiled.host("CompiledFunctionBackward", 1390, 5, 99, true);
  CHECK_THAT(refusal(compiled.text()), Contains("CompiledFunction is several layers in one (torch.compile"));
  Events graphs;
  add_step(graphs, 1, false);
  graphs.kernel("sgemm", 0, 1005, 5, 0, "cudaGraphLaunch");
  CHECK_THAT(refusal(graphs.text()), Contains("in a CUDA graph that is no operator with a gradient"));
  Events again;
  add_step(again, 1, false);
  again.host("autograd::engine::evaluate_function: AddmmBackward0", 1970, 20);
  again.host("aten::linear", 1975, 5);
  CHECK_THAT(
      refusal(again.text()),
      Contains("computes activations again (aten::linear in autograd::engine::evaluate_function: Addmm"));
  Events checkpoint;
  add_step(checkpoint, 1, false);
  checkpoint.host("CheckpointFunctionBackward", 1970, 20);
  CHECK_THAT(refusal(checkpoint.text()), Contains("recompute: true"));
  Events lost;
  add_step(lost, 1, false);
  lost.kernel("nobody", 999999, 1970, 50);
  CHECK_THAT(refusal(lost.text()), Contains("% of the time"));
  CHECK_THAT(refusal("[1, 2"), Contains("not complete JSON"));
  CHECK_THAT(refusal("{\"traceEvents\": 3}"), Contains("expected a profile"));
  CHECK_THAT(refusal(std::string(200, '[')), Contains("JSON is nested more than"));
  CHECK_THAT(refusal("{\"a\": \"" + std::string(5'000'000, 'x')), Contains("4 MB"));
  CHECK_THAT(refusal("{\"a\": " + std::string(5'000'000, ' ')), Contains("4 MB"));
  CHECK_THAT(refusal("{\"a\": " + std::string(5'000'000, '1')), Contains("not complete JSON"));
  CHECK_THAT(refusal("{\"a\": 1." + std::string(5'000'000, '1')), Contains("4 MB"));
  const std::string tiny = "0." + std::string(30, '0') + "1e-2147483647";
  CHECK_THAT(refusal("[{\"ph\": \"X\", \"ts\": " + tiny + "}]"), Contains("has no steps"));
  for (const std::string& rest : {std::string("x"), std::string("\0x", 2), std::string("\0", 1)})
    CHECK_THAT(refusal(two_steps(true) + rest), Contains("not complete JSON"));
  CHECK_THAT(refusal(""), Contains("not complete JSON"));
}

TEST_CASE("what a profile holds in memory is limited, however large its file is", "[models]") {
  Events threads;
  threads.range("ProfilerStep#1", 0, 1e6);
  std::string text = threads.text();
  const auto with = [&](const std::string& events) {
    std::string all = text;
    return all.insert(all.size() - 2, events);
  };
  std::string many;
  for (int i = 0; i < 10'002; ++i)
    many += fmt::format(R"(,{{"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":{},"ts":1,"dur":1}})",
                        100 + i);
  CHECK_THAT(refusal(with(many)), Contains("more than 10000 threads"));
  std::string shapes;
  for (int i = 0; i < 1001; ++i) {
    shapes +=
        R"(,{"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":1,"ts":1,"dur":1,"args":{"Input Dims":[[)" +
        std::to_string(i);
    for (int k = 0; k < 4095; ++k) shapes += ",1";
    shapes += "]]}}";
  }
  CHECK_THAT(refusal(with(shapes)), Contains("distinct shapes of operators have more than 4000000 sizes"));
}

TEST_CASE("operators with the same shapes share one list of them", "[models]") {
  const ProfileFile file(two_steps(true));
  const Profile profile = read_profile(file.name());
  CHECK(profile.shapes.size() == 4);  // none, and those of three operators
  CHECK(profile.shapes.front().empty());
  const auto conv =
      std::find_if(profile.operators.begin(), profile.operators.end(),
                   [&](const ProfileOperator& one) { return profile.name(one) == "aten::conv2d"; });
  CHECK(profile.shapes_of(*conv) == std::vector<Shape>{{2, 3, 8, 8}, {4, 3, 3, 3}, {4}});
}

TEST_CASE("control characters and broken UTF-8 in names of a profile become question marks", "[models]") {
  const ProfileFile file(
      R"([{"name":"a\u0007b\u00e9","ph":"X","ts":1,"dur":2},{"name":"c)"
      "\xff"
      R"(\n","ph":"X","ts":4,"dur":2},{"name":"a\u0007b\u00e9","ph":"X","ts":7,"dur":2}])");
  CHECK(read_profile(file.name()).names == std::vector<std::string>{"a?b\u00e9", "c??"});
}

TEST_CASE("a truncated gzip file is refused", "[models]") {
  const std::string name =
      (std::filesystem::temp_directory_path() / ("cut-" + std::to_string(getpid()) + ".gz")).string();
  const std::string text = two_steps(true);
  const gzFile packed = gzopen(name.c_str(), "wb");
  gzwrite(packed, text.data(), text.size());
  gzclose(packed);
  CHECK(read_profile(name).kernels.size() == 20);
  std::filesystem::resize_file(name, std::filesystem::file_size(name) / 2);
  CHECK_THROWS_WITH(read_profile(name), Contains("truncated"));
  std::filesystem::remove(name);
}
