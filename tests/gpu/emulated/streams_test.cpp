#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/yaml.hpp"
#include "cuda_on_host.hpp"
#include "fake_streams.hpp"
#include "kernels/cudnn/backend.hpp"
#include "kernels/cudnn/capture/step_events.hpp"
#include "kernels/network/network.hpp"
#include "learned_curve.hpp"

// The fake GPU shows what forgets to wait, and what the host does before it launches.

namespace {
thread_local std::size_t allocations = 0;  ///< of the host's memory, by this thread
}

// Take the place of the library's new and delete in this program. The compiler must not look into them where
// they are called, because it would miss the other one of the pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace stepcast::test {
namespace {

struct Two {
  Two() {
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    void* memory = nullptr;
    cudaMalloc(&memory, 8);
    from = static_cast<char*>(memory);
    to = from + 4;
    cudaMemsetAsync(memory, 0, 8, first);
    cudaStreamSynchronize(first);
  }
  Two(const Two&) = delete;
  ~Two() {
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaEventDestroy(event);
    cudaFree(from);
  }

  /// Copies on the second stream what the first stream writes. @return the value that is copied
  int copied(bool waits) const {
    cudaMemsetAsync(from, 7, 1, first);
    cudaEventRecord(event, first);
    if (waits) cudaStreamWaitEvent(second, event, 0);
    cudaMemcpyAsync(to, from, 1, cudaMemcpyDeviceToDevice, second);
    cudaStreamSynchronize(second);
    return *to;
  }

  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  char *from = nullptr, *to = nullptr;
};

}  // namespace

TEST_CASE("a stream that waits for another has its results, and one that forgets to wait has not always",
          "[fake][streams]") {
  int missed = 0;
  for (int i = 0; i < 60; ++i) {
    CHECK(Two().copied(true) == 7);
    missed += Two().copied(false) == 7 ? 0 : 1;
  }
  CHECK(missed > 5);
}

TEST_CASE("an event is not ready before its stream has come to it, and has no time then", "[fake][streams]") {
  const Two two;
  cudaMemsetAsync(two.from, 7, 1, two.first);
  cudaEventRecord(two.event, two.first);
  float milliseconds = 0;
  int waits = 0;
  while (cudaEventQuery(two.event) == cudaErrorNotReady) ++waits;
  CHECK(waits < 100);
  CHECK(*two.from == 7);
  CHECK(cudaEventElapsedTime(&milliseconds, two.event, two.event) == cudaSuccess);
}

TEST_CASE("a graph holds what was captured, runs nothing before it is launched, and runs it each time",
          "[fake][streams]") {
  const Two two;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaStreamBeginCapture(two.first, cudaStreamCaptureModeThreadLocal);
  cudaMemcpyAsync(two.to, two.from, 1, cudaMemcpyDeviceToDevice, two.first);
  cudaMemsetAsync(two.from, 9, 1, two.first);
  cudaStreamEndCapture(two.first, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaStreamSynchronize(two.first);
  CHECK(*two.from == 0);
  for (const int expected : {0, 9}) {
    cudaGraphLaunch(executable, two.first);
    cudaStreamSynchronize(two.first);
    CHECK(*two.to == expected);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_CASE("launches that a GPU refuses are refused", "[fake][streams]") {
  using emulated::Shape;
  const auto refuses = [](dim3 grid, dim3 block) {
    CHECK_THROWS_AS(emulated::launch(Shape(grid, block, 0, nullptr), [] {}), std::logic_error);
  };
  refuses(dim3(0), dim3(32));
  refuses(dim3(1, 0), dim3(32));
  refuses(dim3(1, 65536), dim3(32));
  refuses(dim3(1, 1, 65536), dim3(32));
  refuses(dim3(2147483648U), dim3(32));
  refuses(dim3(1), dim3(0));
  refuses(dim3(1), dim3(1025));
  refuses(dim3(1), dim3(32, 33));
  refuses(dim3(1), dim3(1, 1, 65));
  CHECK_NOTHROW(emulated::launch(Shape(dim3(1, 65535), dim3(1), 0, nullptr), [] {}));
}

namespace {

Model model_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "model.yaml");
  return read_model(YamlValue(node, ""));
}

/// Counts the allocations of the host between the first addition to a stream and the second.
class FirstLaunch {
 public:
  FirstLaunch() {
    fake::enqueue_observer() = [this](bool added) {
      if (calls_ == 1 && added) before_ = allocations;
      if (calls_ == 2 && !added) after_ = allocations;
      ++calls_;
    };
  }
  FirstLaunch(const FirstLaunch&) = delete;
  ~FirstLaunch() { fake::enqueue_observer() = {}; }

  std::size_t allocations_before() const { return after_ - before_; }

 private:
  int calls_ = 0;
  std::size_t before_ = 0, after_ = 0;
};

/// Allocations of the host between the start event of a step and its first launch, for so many dense layers.
struct StartOfStep {
  std::size_t whole = 0;      ///< of a step that is timed as a whole
  std::size_t by_passes = 0;  ///< of a step with an event after each pass
};

StartOfStep start_of_step(GpuPrecision precision, int layers) {
  std::string text = "name: chain\nsource: test\ninput: [8]\nlayers:\n";
  for (int i = 0; i < layers; ++i)
    text += "  - {name: dense" + std::to_string(i) + ", kind: dense, units: 8}\n";
  const Model model = model_of(text + "  - {name: loss, kind: softmax_cross_entropy}\n");
  const auto device = std::make_shared<cudnn::Device>(GpuOptions{.precision = precision});
  const auto backend = cudnn::make_backend(device);
  Network network(*backend, model, {.batch = 2});
  cudnn::StepEvents events(device, network);
  for (int i = 0; i < 2; ++i) {  // the first steps make what later ones use
    events.time_whole_step();
    events.time_passes(0);
  }
  StartOfStep result;
  {
    const FirstLaunch first;
    events.time_whole_step();
    result.whole = first.allocations_before();
  }
  const FirstLaunch first;
  events.time_passes(0);
  result.by_passes = first.allocations_before();
  return result;
}

}  // namespace

TEST_CASE("between the start event of a step and its first launch the host's work is that of the first layer",
          "[fake][streams]") {
  const auto precision = GENERATE(GpuPrecision::f32, GpuPrecision::bf16);
  const StartOfStep few = start_of_step(precision, 2), many = start_of_step(precision, 60);
  CHECK(many.whole == few.whole);
  CHECK(many.by_passes == few.by_passes);
}

namespace {

/// Parameters after five steps on other data and with another rate each, whose passes are called in two parts
/// as a strategy with buckets calls them.
struct TrainedInParts {
  std::vector<std::vector<float>> parameters;
  int launches = 0;  ///< of the last step
  bool recorded = false;
};

TrainedInParts trained_in_parts(const Model& model, const GpuOptions& gpu) {
  const auto backend = make_cudnn_backend(gpu);
  Network network(*backend, model, {.batch = 4, .optimizer = {.momentum = 0.9}});
  const std::size_t layers = model.layers.size(), middle = layers / 2;
  TrainedInParts result;
  for (int step = 0; step < 5; ++step) {
    network.fill_with_synthetic_data(step);
    const emulated::LaunchCount count;
    network.run_forward(0, middle);
    network.run_forward(middle, layers);
    network.run_backward(middle, layers);
    network.run_backward(0, middle);
    network.begin_update();
    network.set_rate(0.1 / (step + 1), 1);
    network.update_layers(0, layers);
    result.launches = count.launches();
  }
  for (std::size_t i = 0; i < layers; ++i) {
    for (std::size_t k = 0; k < model.layers[i].parameters.size(); ++k)
      result.parameters.push_back(network.kernel(i).read_parameter(k));
  }
  result.recorded = network.has_recordings();
  return result;
}

}  // namespace

TEST_CASE("passes that are replayed as graphs train to the bits of single launches", "[fake][graphs]") {
  const auto precision = GENERATE(GpuPrecision::f32, GpuPrecision::bf16);
  const Model model = model_of(GENERATE(kImages, kBlocks));
  CAPTURE(model.name);
  const TrainedInParts singly = trained_in_parts(model, {.precision = precision});
  const TrainedInParts replayed = trained_in_parts(model, {.precision = precision, .graphs = true});
  CHECK(replayed.parameters == singly.parameters);
  CHECK(!singly.recorded);
  CHECK(replayed.recorded);
  CHECK(singly.launches > 5);
  CHECK(replayed.launches == 1);  // the update, whose rate and step change
}

TEST_CASE("layers with dropout are launched singly, because a graph would repeat their masks",
          "[fake][graphs]") {
  const Model model = model_of(R"(
name: drops
source: test
input: [12]
layers:
  - {name: one, kind: dense, units: 24}
  - {name: drop, kind: dropout, rate: 0.5}
  - {name: two, kind: dense, units: 5}
  - {name: loss, kind: softmax_cross_entropy}
)");
  const TrainedInParts singly = trained_in_parts(model, {}), with = trained_in_parts(model, {.graphs = true});
  CHECK(with.parameters == singly.parameters);
  CHECK(with.recorded);  // the layers from the third on
}

TEST_CASE("work that another thread adds while a graph is recorded runs once, after the recording",
          "[fake][graphs]") {
  const auto device = std::make_shared<cudnn::Device>(GpuOptions{.graphs = true});
  const auto backend = cudnn::make_backend(device);
  DeviceMemory& memory = *backend->device_memory();
  const auto values = memory.allocate(4), ones = memory.allocate(4);
  const DeviceMemory::Event begin = memory.record_event();
  DeviceMemory::Event end;
  std::jthread other;
  const auto recorded = backend->record_work([&] {
    other = std::jthread([&] {
      backend->begin_thread();
      end = memory.record_event();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which the thread would add its event
    backend->add(ones.get(), values.get(), 4);
  });
  other.join();
  backend->finish();
  CHECK(memory.seconds(begin, end) >= 0);
}

}  // namespace stepcast::test
