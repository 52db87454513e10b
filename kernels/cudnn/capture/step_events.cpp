#include "kernels/cudnn/capture/step_events.hpp"

#include <algorithm>

#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "kernels/timing/step_timer.hpp"

namespace stepcast::cudnn {
namespace {

/// Runs a step. The list of passes is made beforehand, because the GPU waits while the host makes it.
void run_step(Network& network, const std::vector<LayerPass>& passes) {
  bool updating = false;
  for (const LayerPass& one : passes) {
    if (one.pass == Pass::update && !updating) network.begin_update();
    updating = updating || one.pass == Pass::update;
    network.run(one.layer, one.pass);
  }
}

}  // namespace

Event make_event() {
  return make_owned<Event>(cudaEventCreate, "cudaEventCreate");
}

double seconds_between(const Event& begin, const Event& end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
  return 1e-3 * milliseconds;
}

StepEvents::StepEvents(std::shared_ptr<Device> device, Network& network)
    : device_(std::move(device)), network_(network), passes_(passes_in_order(network)) {
  const std::size_t count = std::max<std::size_t>(passes_.size(), 256) + 1;
  for (std::size_t i = 0; i < count; ++i) events_.push_back(make_event());
}

void StepEvents::record(std::size_t event) {
  check(cudaEventRecord(events_.at(event).get(), device_->stream.get()), "cudaEventRecord");
}

std::vector<double> StepEvents::intervals(std::size_t events) const {
  std::vector<double> seconds;
  for (std::size_t i = 1; i < events; ++i) seconds.push_back(seconds_between(events_[i - 1], events_[i]));
  return seconds;
}

void StepEvents::warm_up(int steps) {
  const double begin = now().wall;
  for (int i = 0; i < steps || now().wall - begin < kRise; ++i) time_whole_step();
}

double StepEvents::time_whole_step() {
  record(0);
  run_step(network_, passes_);
  record(1);
  check(cudaStreamSynchronize(device_->stream.get()), "cudaStreamSynchronize");
  return intervals(2).front();
}

std::vector<double> StepEvents::time_passes() {
  std::size_t next = 0;
  record(next++);
  network_.step([&](std::size_t, Pass) { record(next++); });
  return intervals(next);
}

double StepEvents::cost_of_event() {
  constexpr std::size_t kEvents = 256;
  constexpr std::int64_t kElements = 1 << 22;
  const auto from = allocate_bytes(kElements * sizeof(float), device_->stream.get());
  const auto to = allocate_bytes(kElements * sizeof(float), device_->stream.get());
  // Keeps the GPU busy for some milliseconds, while all events are queued.
  run_background_load(BackgroundLoad::copy, static_cast<const float*>(from.get()),
                      static_cast<float*>(to.get()), kElements, 64, 4, device_->stream.get());
  for (std::size_t i = 0; i < kEvents; ++i) record(i);
  check(cudaStreamSynchronize(device_->stream.get()), "cudaStreamSynchronize");
  std::vector<double> costs = intervals(kEvents);
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  return *middle;
}

StepGraph::StepGraph(std::shared_ptr<Device> device, Network& network) : device_(std::move(device)) {
  const cudaStream_t stream = device_->stream.get();
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const std::vector<LayerPass> passes = passes_in_order(network);
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    run_step(network, passes);
  } catch (const std::exception&) {
    static_cast<void>(cudaStreamEndCapture(stream, &graph));  // otherwise the stream stays unusable
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  graph_ = Graph(graph);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  executable_ = Executable(executable);
}

double StepGraph::time() {
  const Event begin = make_event(), end = make_event();
  check(cudaEventRecord(begin.get(), device_->stream.get()), "cudaEventRecord");
  check(cudaGraphLaunch(executable_.get(), device_->stream.get()), "cudaGraphLaunch");
  check(cudaEventRecord(end.get(), device_->stream.get()), "cudaEventRecord");
  check(cudaStreamSynchronize(device_->stream.get()), "cudaStreamSynchronize");
  return seconds_between(begin, end);
}

}  // namespace stepcast::cudnn
