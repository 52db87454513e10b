#include "pretended_streams.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>

#include "cuda_on_host.hpp"
#include "pretended_cuda.hpp"

// Fakes of CUDA's streams and events. An operation runs when its stream is waited for; operations of other
// streams run before or after that, in a drawn order. What depends on another stream without waiting for it
// therefore gives wrong numbers in some of the runs.

namespace {

using namespace stepcast;
using Clock = std::chrono::steady_clock;

struct Stream {
  std::deque<std::function<void()>> work;
};

/// An event outlives its handle while operations refer to it.
struct EventState {
  std::uint64_t recorded = 0, done = 0;  ///< numbers of records
  Stream* stream = nullptr;              ///< of the last record
  Clock::time_point time;
};
struct EventHandle {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

std::recursive_mutex gate;  // ranks that are threads share the fake GPU
std::set<Stream*> streams;
std::map<void*, Stream*> of_handles;
std::mt19937 random_numbers(1);

Stream* of(cudaStream_t stream) {
  return reinterpret_cast<Stream*>(stream);
}
EventHandle& of(cudaEvent_t event) {
  return *reinterpret_cast<EventHandle*>(event);
}

bool drawn(unsigned one_of) {
  return random_numbers() % one_of == 0;
}

void run_first(Stream& stream) {
  const std::function<void()> operation = std::move(stream.work.front());
  stream.work.pop_front();
  operation();
}

void drain_one(Stream& stream) {
  while (!stream.work.empty()) run_first(stream);
}

/// Runs the first operations of some other streams.
void run_some_others(const Stream* besides) {
  for (Stream* other : std::set<Stream*>(streams)) {
    while (other != besides && streams.contains(other) && !other->work.empty() && drawn(3)) run_first(*other);
  }
}

/// Runs the stream of an event until the record has happened.
void run_until(EventState& event, std::uint64_t record) {
  while (event.done < record && streams.contains(event.stream) && !event.stream->work.empty())
    run_first(*event.stream);
}

cudaError_t outside_of_graphs() {
  return pretended::capturing() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

/// Kernels of the translated .cu files are operations of their streams, too.
const bool deferring = [] {
  emulated::launcher() = pretended::enqueue;
  return true;
}();

}  // namespace

void pretended::enqueue(cudaStream_t stream, std::function<void()> operation) {
  const std::lock_guard lock(gate);
  if (stream == nullptr) return operation();
  of(stream)->work.push_back(std::move(operation));
  if (capturing()) drain_one(*of(stream));
  if (drawn(8)) run_some_others(nullptr);
}

void pretended::drain(cudaStream_t stream) {
  const std::lock_guard lock(gate);
  if (stream == nullptr) return;
  if (drawn(2)) run_some_others(of(stream));
  drain_one(*of(stream));
}

void pretended::drain_all() {
  const std::lock_guard lock(gate);
  for (Stream* one : std::set<Stream*>(streams)) drain_one(*one);
}

void pretended::set_stream(void* handle, cudaStream_t stream) {
  const std::lock_guard lock(gate);
  of_handles[handle] = of(stream);
}

void pretended::drain_stream_of(void* handle) {
  const std::lock_guard lock(gate);
  const auto found = of_handles.find(handle);
  if (found != of_handles.end() && streams.contains(found->second)) drain_one(*found->second);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(gate);
  auto* made = new Stream;
  streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(gate);
  drain_one(*of(stream));
  streams.erase(of(stream));
  delete of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (outside_of_graphs() != cudaSuccess) return outside_of_graphs();
  pretended::drain(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event == nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(gate);
  const auto state = of(event).state;
  pretended::enqueue(stream, [state, record = state->recorded] { run_until(*state, record); });
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new EventHandle);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(gate);
  const auto state = of(event).state;
  state->stream = of(stream);
  pretended::enqueue(stream, [state, record = ++state->recorded] {
    state->done = record;
    state->time = Clock::now();
  });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return cudaErrorInvalidValue;
  if (outside_of_graphs() != cudaSuccess) return outside_of_graphs();
  const std::lock_guard lock(gate);
  EventState& state = *of(event).state;
  run_until(state, state.recorded);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(gate);
  EventState& state = *of(event).state;
  if (state.done < state.recorded && drawn(2)) return cudaErrorNotReady;
  return cudaEventSynchronize(event);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::lock_guard lock(gate);
  const EventState &from = *of(begin).state, &to = *of(end).state;
  if (from.done < from.recorded || to.done < to.recorded) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(to.time - from.time).count();
  return cudaSuccess;
}
