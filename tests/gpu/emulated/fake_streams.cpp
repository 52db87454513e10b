#include "fake_streams.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_on_host.hpp"
#include "fake_cuda.hpp"

// Fakes of CUDA's streams, events and graphs. An operation runs when its stream is waited for; operations of
// other streams run before or after that, in a drawn order. What depends on another stream without waiting
// for it therefore gives wrong numbers in some of the runs.

namespace {

using namespace stepcast;
using Clock = std::chrono::steady_clock;
using fake::Operation;

/// A wait ends with an error after this time without an operation of any stream: a real GPU would hang.
constexpr std::chrono::seconds kLongest(20);

struct Stream {
  int device = 0;
  std::deque<Operation> work;
  bool runs = false;                           ///< its first operation runs now
  std::vector<Operation>* captured = nullptr;  ///< of the graph that is captured
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
struct Graph {
  std::vector<Operation> operations;
};

std::recursive_mutex gate;  // ranks that are threads share the fake GPUs
std::set<Stream*> streams;
std::map<void*, Stream*> of_handles;
std::mt19937 random_numbers(1);
std::uint64_t operations_done = 0;  ///< of all streams

Stream* of(cudaStream_t stream) {
  return reinterpret_cast<Stream*>(stream);
}
EventHandle& of(cudaEvent_t event) {
  return *reinterpret_cast<EventHandle*>(event);
}

bool drawn(unsigned one_of) {
  return random_numbers() % one_of == 0;
}

/// Tries the first operation. @return whether it is done
bool run_first(Stream& stream) {
  if (stream.runs) return false;  // it waits for a stream that waits for it
  stream.runs = true;
  bool done = true;
  try {
    done = stream.work.front()();
  } catch (...) {
    stream.runs = false;
    stream.work.pop_front();
    throw;
  }
  stream.runs = false;
  if (!done) return false;
  stream.work.pop_front();
  ++operations_done;
  return true;
}

/// @return whether nothing is left
bool drain_one(Stream& stream) {
  while (!stream.work.empty()) {
    if (!run_first(stream)) return false;
  }
  return true;
}

/// Runs the first operations of some other streams.
void run_some_others(const Stream* besides) {
  for (Stream* other : std::set<Stream*>(streams)) {
    while (other != besides && streams.contains(other) && !other->work.empty() && drawn(3)) {
      if (!run_first(*other)) break;
    }
  }
}

/// Runs the stream of an event until the record has happened. @return whether it has
bool run_until(EventState& event, std::uint64_t record) {
  while (event.done < record && streams.contains(event.stream) && !event.stream->work.empty()) {
    if (!run_first(*event.stream)) return false;
  }
  return true;
}

/// Calls `done` until it returns true.
template <class Done>
void wait_for(const Done& done) {
  std::uint64_t seen = 0;
  for (auto since = Clock::now();;) {
    {
      const std::lock_guard lock(gate);
      if (done()) return;
      if (std::exchange(seen, operations_done) != operations_done) since = Clock::now();
    }
    if (Clock::now() - since > kLongest) throw std::logic_error("a stream of the fake GPU waits for ever");
    std::this_thread::yield();
  }
}

cudaError_t outside_of_graphs() {
  return fake::capturing() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

/// Kernels of the translated .cu files are operations of their streams, too.
const bool deferring = [] {
  emulated::launcher() = fake::enqueue;
  return true;
}();

}  // namespace

bool& fake::capturing() {
  thread_local bool now = false;
  return now;
}
int& fake::current_device() {
  thread_local int device = 0;
  return device;
}
int& fake::device_count() {
  static int count = 1;
  return count;
}

void fake::enqueue(cudaStream_t stream, std::function<void()> operation) {
  if (stream == nullptr) return operation();
  enqueue_waiting(stream, [operation = std::move(operation)] {
    operation();
    return true;
  });
}

std::function<void(bool added)>& fake::enqueue_observer() {
  static std::function<void(bool added)> one;
  return one;
}

namespace {

/// Tells the observer of the beginning and the end of an addition to a stream.
struct ObservedAddition {
  ObservedAddition() { tell(false); }
  ObservedAddition(const ObservedAddition&) = delete;
  ~ObservedAddition() { tell(true); }
  static void tell(bool added) {
    if (fake::enqueue_observer()) fake::enqueue_observer()(added);
  }
};

}  // namespace

void fake::enqueue_waiting(cudaStream_t stream, Operation operation) {
  const std::lock_guard lock(gate);
  const ObservedAddition observed;
  if (of(stream)->captured != nullptr) return of(stream)->captured->push_back(std::move(operation));
  of(stream)->work.push_back(std::move(operation));
  if (drawn(8)) run_some_others(nullptr);
}

void fake::drain(cudaStream_t stream) {
  if (stream == nullptr) return;
  wait_for([stream] {
    if (drawn(2)) run_some_others(of(stream));
    return drain_one(*of(stream));
  });
}

void fake::drain_all() {
  wait_for([] {
    bool all = true;
    for (Stream* one : std::set<Stream*>(streams))
      all = (one->device != current_device() || drain_one(*one)) && all;
    return all;
  });
}

void fake::set_stream(void* handle, cudaStream_t stream) {
  const std::lock_guard lock(gate);
  of_handles[handle] = of(stream);
}

void fake::drain_stream_of(void* handle) {
  drain(reinterpret_cast<cudaStream_t>(of_handles.at(handle)));
}

void fake::enqueue_on(void* handle, std::function<void()> operation) {
  const std::lock_guard lock(gate);
  enqueue(reinterpret_cast<cudaStream_t>(of_handles.at(handle)), std::move(operation));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(gate);
  auto* made = new Stream{.device = fake::current_device(), .work = {}};
  streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  fake::drain(stream);
  const std::lock_guard lock(gate);
  streams.erase(of(stream));
  delete of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (outside_of_graphs() != cudaSuccess) return outside_of_graphs();
  fake::drain(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event == nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(gate);
  const auto state = of(event).state;
  fake::enqueue_waiting(stream, [state, record = state->recorded] { return run_until(*state, record); });
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
  fake::enqueue(stream, [state, record = ++state->recorded] {
    state->done = record;
    state->time = Clock::now();
  });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return cudaErrorInvalidValue;
  if (outside_of_graphs() != cudaSuccess) return outside_of_graphs();
  EventState& state = *of(event).state;
  wait_for([&state] { return run_until(state, state.recorded); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(gate);
  EventState& state = *of(event).state;
  if (state.done < state.recorded && drawn(2)) return cudaErrorNotReady;
  return run_until(state, state.recorded) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::lock_guard lock(gate);
  const EventState &from = *of(begin).state, &to = *of(end).state;
  if (from.done < from.recorded || to.done < to.recorded) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(to.time - from.time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(gate);
  if (fake::capturing()) return cudaErrorIllegalState;
  fake::capturing() = true;
  of(stream)->captured = new std::vector<Operation>;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(gate);
  fake::capturing() = false;
  const std::unique_ptr<std::vector<Operation>> captured(std::exchange(of(stream)->captured, nullptr));
  *graph = reinterpret_cast<cudaGraph_t>(new Graph{*captured});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const Operation& one : reinterpret_cast<Graph*>(graph)->operations) fake::enqueue_waiting(stream, one);
  return cudaSuccess;
}
