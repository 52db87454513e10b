#include <fmt/format.h>

#include <functional>

#include "kernels/cudnn/backend.hpp"
#include "kernels/cudnn/capture/kernel_probes.hpp"
#include "kernels/cudnn/capture/nccl_probe.hpp"
#include "kernels/cudnn/capture/step_events.hpp"
#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "kernels/timing/capture.hpp"
#include "kernels/timing/step_timer.hpp"

namespace stepcast {
namespace cudnn {
namespace {

constexpr int kRepeats = 20, kWarmUp = 3;
constexpr std::int64_t kLargest = 1 << 26;  // floats: 256 MiB, several times the size of any cache

std::shared_ptr<void> pinned_bytes(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return {memory, [](void* pointer) { cudaFreeHost(pointer); }};
}

float* floats(const std::shared_ptr<void>& memory) {
  return static_cast<float*>(memory.get());
}

/// Device, memory and results of all probes.
struct Bench {
  std::shared_ptr<Device> device;
  std::shared_ptr<void> host, one, two;
  GpuProbes result;

  cudaStream_t stream() const { return device->stream.get(); }

  /// Times a call by events before and after it.
  void time(const std::string& name, double bytes, const std::function<void()>& call) {
    GpuProbe probe{name, {bytes}, {}};
    for (int i = -kWarmUp; i < kRepeats; ++i) {
      const double seconds = seconds_on_stream(stream(), call);
      if (i >= 0) probe.seconds.push_back(seconds);
    }
    result.probes.push_back(probe);
  }
};

/// Keeps the GPU busy until its clocks have risen.
void warm_up(const Bench& bench) {
  for (const double begin = now().wall; now().wall - begin < kRise;) {
    run_background_load(BackgroundLoad::copy, floats(bench.one), floats(bench.two), kLargest, 1, 132,
                        bench.stream());
    check(cudaStreamSynchronize(bench.stream()), "cudaStreamSynchronize");
  }
}

/// Times launches on the host, and on the GPU when many launches are queued.
void probe_launches(Bench& bench) {
  constexpr int kLaunches = 1000;
  GpuProbe host{"launch of an empty kernel, host time", {}, {}}, gpu = host;
  gpu.name = "launch of an empty kernel, GPU time of many in a row";
  for (int i = -kWarmUp; i < kRepeats; ++i) {
    double on_host = 0;
    const double on_gpu = seconds_on_stream(bench.stream(), [&] {
      const Instant started = now();
      for (int k = 0; k < kLaunches; ++k) launch_nothing(bench.stream());
      on_host = now().wall - started.wall;
    });
    if (i < 0) continue;
    host.seconds.push_back(on_host / kLaunches);
    gpu.seconds.push_back(on_gpu / kLaunches);
  }
  bench.result.probes.push_back(host);
  bench.result.probes.push_back(gpu);
}

void probe_copies(Bench& bench) {
  const auto copy = [&](const std::shared_ptr<void>& from, const std::shared_ptr<void>& to, std::size_t bytes,
                        cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to.get(), from.get(), bytes, kind, bench.stream()), "cudaMemcpyAsync");
  };
  for (std::size_t bytes = 4096; bytes <= kLargest * sizeof(float); bytes *= 16) {
    const double size = bytes;
    bench.time("copy host to device, pinned", size,
               [&] { copy(bench.host, bench.one, bytes, cudaMemcpyHostToDevice); });
    bench.time("copy device to host, pinned", size,
               [&] { copy(bench.one, bench.host, bytes, cudaMemcpyDeviceToHost); });
    bench.time("copy on the device", size,
               [&] { copy(bench.one, bench.two, bytes, cudaMemcpyDeviceToDevice); });
  }
}

void probe_kernels(Bench& bench) {
  const double bandwidth = memory_bandwidth(bench.device->options.device);
  for (const KernelProbe& one : kernel_probes(bench.device, kLargest)) {
    bench.time(one.name, one.bytes, one.call);
    if (bandwidth > 0) bench.result.probes.back().floor = {one.bytes / bandwidth};
  }
}

constexpr int kBlocks = 16;  ///< about as many thread blocks as NCCL uses
constexpr std::int64_t kLoadElements = 1 << 24;

void background_load(const Bench& bench, BackgroundLoad kind, int rounds, cudaStream_t stream) {
  run_background_load(kind, floats(bench.one), floats(bench.two), kLoadElements, rounds, kBlocks, stream);
}

/// Seconds of one round of the background load when it runs alone.
double seconds_of_round(const Bench& bench, BackgroundLoad kind) {
  constexpr int kRounds = 10;
  const auto rounds = [&] { background_load(bench, kind, kRounds, bench.stream()); };
  rounds();  // is not timed
  return seconds_on_stream(bench.stream(), rounds) / kRounds;
}

/// Times steps while another stream copies or reduces. The background load starts before each step and lasts
/// three steps, or longer if the step slows it down.
/// @param load  null: no background load
/// @return the last step's seconds
double probe_step_under_load(Bench& bench, StepEvents& events, const std::string& name,
                             const BackgroundLoad* load, double expected) {
  const Stream other = make_stream();
  GpuProbe probe{name, {}, {}};
  const int rounds =
      load == nullptr ? 0 : static_cast<int>(3 * expected / seconds_of_round(bench, *load)) + 1;
  for (int i = -kWarmUp; i < kRepeats; ++i) {
    const Event load_end = make_event();
    if (load != nullptr) {
      background_load(bench, *load, rounds, other.get());
      record(load_end.get(), other.get());
    }
    const double seconds = events.time_whole_step();
    const bool covered = load == nullptr || cudaEventQuery(load_end.get()) == cudaErrorNotReady;
    cudaGetLastError();
    check(cudaStreamSynchronize(other.get()), "cudaStreamSynchronize");
    if (i >= 0 && covered) probe.seconds.push_back(seconds);
  }
  const int kept = probe.seconds.size();
  if (kept < kRepeats) {
    bench.result.notes.push_back(
        fmt::format("{}: in {} of {} steps the background load ended before the step; they are left out",
                    name, kRepeats - kept, kRepeats));
  }
  bench.result.probes.push_back(probe);
  return probe.seconds.empty() ? expected : probe.seconds.back();
}

}  // namespace
}  // namespace cudnn

GpuProbes probe_gpu(const GpuOptions& gpu, const Model& model, std::int64_t batch) {
  using namespace cudnn;
  const auto device = std::make_shared<Device>(gpu);
  constexpr std::size_t kBytes = kLargest * sizeof(float);
  const cudaStream_t stream = device->stream.get();
  Bench bench{
      device, pinned_bytes(kBytes), allocate_bytes(kBytes, stream), allocate_bytes(kBytes, stream), {}};
  const auto backend = make_backend(device);
  bench.result.device = backend->device();
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), bus.size(), gpu.device), "cudaDeviceGetPCIBusId");
  bench.result.state_before = gpu_state(bus.data());
  warm_up(bench);
  probe_launches(bench);
  probe_copies(bench);
  probe_kernels(bench);
  probe_all_reduce(
      {gpu.device, stream, floats(bench.one), floats(bench.two), kLargest},
      [&bench](const auto& name, double bytes, const auto& call) { bench.time(name, bytes, call); },
      bench.result.notes);
  Network network(*backend, model, {.batch = batch});
  StepEvents events(device, network);
  events.warm_up(kWarmUp);
  const std::string step =
      fmt::format("step of {}, batch {}, {}", model.name, batch, to_string(gpu.precision));
  const BackgroundLoad copy = BackgroundLoad::copy, reduction = BackgroundLoad::reduction;
  const double alone = probe_step_under_load(bench, events, step + ", alone", nullptr, 0);
  probe_step_under_load(bench, events, step + ", during a copy", &copy, alone);
  probe_step_under_load(bench, events, step + ", during a reduction", &reduction, alone);
  bench.result.state_after = gpu_state(bus.data());
  return bench.result;
}

}  // namespace stepcast
