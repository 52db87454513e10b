#include <fmt/format.h>

#include <functional>

#include "kernels/cudnn/all_reduce.hpp"
#include "kernels/cudnn/backend.hpp"
#include "kernels/cudnn/network_events.hpp"
#include "kernels/cudnn/updates.hpp"
#include "kernels/gpu_capture.hpp"
#include "kernels/gpu_state.hpp"
#include "kernels/stopwatch.hpp"

namespace stepcast {
namespace cudnn {
namespace {

constexpr int kRepeats = 20, kWarmUp = 3;
constexpr std::int64_t kLargest = 1 << 26;  // floats: 256 MiB, several times any cache

std::shared_ptr<void> pinned_bytes(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return {memory, [](void* pointer) { cudaFreeHost(pointer); }};
}

float* floats(const std::shared_ptr<void>& memory) {
  return static_cast<float*>(memory.get());
}

/// Everything that the probes work on.
struct Bench {
  std::shared_ptr<Device> device;
  std::shared_ptr<void> host, one, two;
  GpuProbes result;

  cudaStream_t stream() const { return device->stream.get(); }

  /// Seconds between events around each call.
  void time(const std::string& name, double bytes, const std::function<void()>& call) {
    GpuProbe probe{name, {bytes}, {}};
    for (int i = -kWarmUp; i < kRepeats; ++i) {
      const Event begin = make_event(), end = make_event();
      check(cudaEventRecord(begin.get(), stream()), "cudaEventRecord");
      call();
      check(cudaEventRecord(end.get(), stream()), "cudaEventRecord");
      check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
      if (i >= 0) probe.seconds.push_back(seconds_between(begin, end));
    }
    result.probes.push_back(probe);
  }
};

/// As many rounds of copies as the GPU's clocks take to rise.
void warm_up(const Bench& bench) {
  for (const double begin = now().wall; now().wall - begin < kRise;) {
    run_companion(Companion::copy, floats(bench.one), floats(bench.two), kLargest, 1, 132, bench.stream());
    check(cudaStreamSynchronize(bench.stream()), "cudaStreamSynchronize");
  }
}

/// A launch as the host pays for it, and as the GPU does when launches are queued.
void probe_launches(Bench& bench) {
  constexpr int kLaunches = 1000;
  GpuProbe host{"launch of an empty kernel, host time", {}, {}}, gpu = host;
  gpu.name = "launch of an empty kernel, GPU time of many in a row";
  for (int i = -kWarmUp; i < kRepeats; ++i) {
    const Event begin = make_event(), end = make_event();
    const Instant started = now();
    check(cudaEventRecord(begin.get(), bench.stream()), "cudaEventRecord");
    for (int k = 0; k < kLaunches; ++k) launch_nothing(bench.stream());
    check(cudaEventRecord(end.get(), bench.stream()), "cudaEventRecord");
    const Instant launched = now();
    check(cudaStreamSynchronize(bench.stream()), "cudaStreamSynchronize");
    if (i < 0) continue;
    host.seconds.push_back((launched.wall - started.wall) / kLaunches);
    gpu.seconds.push_back(seconds_between(begin, end) / kLaunches);
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
    const auto size = static_cast<double>(bytes);
    bench.time("copy host to device, pinned", size,
               [&] { copy(bench.host, bench.one, bytes, cudaMemcpyHostToDevice); });
    bench.time("copy device to host, pinned", size,
               [&] { copy(bench.one, bench.host, bytes, cudaMemcpyDeviceToHost); });
    bench.time("copy on the device", size,
               [&] { copy(bench.one, bench.two, bytes, cudaMemcpyDeviceToDevice); });
  }
}

void probe_all_reduce(Bench& bench) {
  try {
    const LoneAllReduce reduce = make_lone_all_reduce(bench.device->options.device, bench.stream());
    bench.result.notes.push_back(reduce.library);
    if (!reduce.start) return;
    for (std::int64_t elements = 1024; elements <= kLargest; elements *= 16) {
      bench.time("all-reduce among one rank, in place", 4.0 * static_cast<double>(elements),
                 [&] { reduce.start(floats(bench.one), static_cast<std::size_t>(elements)); });
    }
  } catch (const GpuError& error) {
    bench.result.notes.push_back(fmt::format("all-reduce: {}", error.what()));
  }
}

constexpr int kBlocks = 16;  ///< about what NCCL takes
constexpr std::int64_t kCompanyElements = 1 << 24;

void keep_company(const Bench& bench, Companion kind, int rounds, cudaStream_t stream) {
  run_companion(kind, floats(bench.one), floats(bench.two), kCompanyElements, rounds, kBlocks, stream);
}

/// Seconds of one round of company that has the GPU to itself.
double seconds_of_round(const Bench& bench, Companion kind) {
  constexpr int kRounds = 10;
  const Event begin = make_event(), end = make_event();
  keep_company(bench, kind, kRounds, bench.stream());
  check(cudaEventRecord(begin.get(), bench.stream()), "cudaEventRecord");
  keep_company(bench, kind, kRounds, bench.stream());
  check(cudaEventRecord(end.get(), bench.stream()), "cudaEventRecord");
  check(cudaStreamSynchronize(bench.stream()), "cudaStreamSynchronize");
  return seconds_between(begin, end) / kRounds;
}

/// Steps while another stream copies or reduces, from before their start until after their end: three steps
/// long, and longer where the step slows it down too.
/// @return the last step's seconds
double probe_company(Bench& bench, StepEvents& events, const std::string& name, const Companion* companion,
                     double expected) {
  const Stream other = make_stream();
  GpuProbe probe{name, {}, {}};
  const int rounds =
      companion == nullptr ? 0 : static_cast<int>(3 * expected / seconds_of_round(bench, *companion)) + 1;
  for (int i = -kWarmUp; i < kRepeats; ++i) {
    const Event company_end = make_event();
    if (companion != nullptr) {
      keep_company(bench, *companion, rounds, other.get());
      check(cudaEventRecord(company_end.get(), other.get()), "cudaEventRecord");
    }
    const double seconds = events.time_outside();
    const bool covered = companion == nullptr || cudaEventQuery(company_end.get()) == cudaErrorNotReady;
    cudaGetLastError();
    check(cudaStreamSynchronize(other.get()), "cudaStreamSynchronize");
    if (i >= 0 && covered) probe.seconds.push_back(seconds);
  }
  const auto kept = static_cast<int>(probe.seconds.size());
  if (kept < kRepeats) {
    bench.result.notes.push_back(
        fmt::format("{}: {} of {} steps were not covered to their end and are left out", name,
                    kRepeats - kept, kRepeats));
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
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), gpu.device), "cudaDeviceGetPCIBusId");
  bench.result.state_before = gpu_state(bus.data());
  warm_up(bench);
  probe_launches(bench);
  probe_copies(bench);
  probe_all_reduce(bench);
  Network network(*backend, model, {.batch = batch});
  StepEvents events(device, network);
  events.warm_up(kWarmUp);
  const std::string step =
      fmt::format("step of {}, batch {}, {}", model.name, batch, to_string(gpu.precision));
  const Companion copy = Companion::copy, reduction = Companion::reduction;
  const double alone = probe_company(bench, events, step + ", alone", nullptr, 0);
  probe_company(bench, events, step + ", beside a copy", &copy, alone);
  probe_company(bench, events, step + ", beside a reduction", &reduction, alone);
  bench.result.state_after = gpu_state(bus.data());
  return bench.result;
}

}  // namespace stepcast
