#include "gpu/ranks/gpu_rank.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "gpu/capture/selection.hpp"
#include "gpu/nccl/nccl_backend.hpp"
#include "kernels/timing/capture.hpp"
#include "models/layer_times/trace_text.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/rendezvous/store.hpp"
#include "runtime/runs/point_runs.hpp"
#include "runtime/transport/shared_memory_transport.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/plan/plan.hpp"
#include "validate/capture/interleaved_capture.hpp"
#include "validate/launch/real_run_options.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

void write_rank_error(const RankOptions& options, const std::exception& error) {
  const auto file = std::filesystem::path(options.folder) / fmt::format("rank-{}.error", options.rank);
  if (std::filesystem::exists(file)) return;
  const char* kind = dynamic_cast<const InputError*>(&error) != nullptr ? "input"
                     : dynamic_cast<const RankLost*>(&error) != nullptr ? "lost"
                                                                        : "fault";
  try {
    write_atomically(file, fmt::format("{} {}\n", kind, error.what()));
  } catch (const std::exception& unwritten) {
    fmt::print(stderr, "{}: {}\n", unwritten.what(), error.what());
  }
}

namespace {

/// Heartbeat of a rank whose libraries load kernels and search algorithms, which report nothing meanwhile;
/// for at most 90 s, so that a hang there is found.
class SetupHeartbeat {
 public:
  explicit SetupHeartbeat(RankState& state)
      : thread_([&state](const std::stop_token& stop) {
          for (int i = 0; i < 900 && !stop.stop_requested(); ++i) {
            state.heartbeat.fetch_add(1, std::memory_order_relaxed);
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
          }
        }) {}

 private:
  std::jthread thread_;
};

class TraceCaptures {
 public:
  TraceCaptures(const RankContext& run, const RankOptions& options, const GpuOptions& gpu, Library& library)
      : run_(run), options_(options), gpu_(gpu), library_(library) {}

  void capture_network(const NetworkVariant& variant) {
    const auto file = trace_file(run_.folder, variant);
    if (measured_before(options_.validation, file)) return;
    set_status(run_.state, fmt::format("capturing {} with batch {}", variant.model, variant.batch).c_str());
    CaptureOptions capturing = options_of(file, variant.batch);
    capturing.part.accumulate = variant.accumulates;
    write(capture(model_of(variant), capturing), file);
  }

  /// Captures this rank's part of a partitioned network. Rank 0 writes its trace, which is that of the
  /// largest part.
  void capture_part(const Validation& validation, std::size_t index) {
    const NetworkVariant& variant = validation.variants[index];
    const auto file = shard_trace_file(run_.folder, variant, validation.partitions[index]);
    const Model& model = model_of(variant);
    const ModelPartition partition = validation.plan(index).partition;
    if (!partition.simulated_only.empty() || !written_.insert(file).second ||
        measured_before(options_.validation, file))
      return;
    set_status(run_.state,
               fmt::format("capturing a part of {} with batch {}", variant.model, variant.batch).c_str());
    const RankShard own = rank_shard(model, partition, RankId(options_.rank));
    CaptureOptions capturing = options_of(file, own.options.batch);
    capturing.part = own.options.part;
    Trace trace = capture(own.model(), capturing);
    trace.batch = variant.batch;
    write(trace, file);
  }

 private:
  const Model& model_of(const NetworkVariant& variant) {
    const YamlNode name = command_line_name(variant.model);
    return library_.model(YamlValue(name, "model"));
  }

  CaptureOptions options_of(const std::filesystem::path& file, std::int64_t batch) const {
    CaptureOptions capturing{.name = file.stem().string(),
                             .command = fmt::format("stepcast-gpu run {} --ranks {}",
                                                    options_.validation.scenario, options_.ranks),
                             .batch = batch,
                             .steps = 12,
                             .warm_up = 5};
    capturing.progress = [this](double, Seconds) { run_.state.heartbeat.fetch_add(1); };
    return capturing;
  }

  Trace capture(const Model& model, const CaptureOptions& capturing) const {
    barrier(run_.transport);
    const SetupHeartbeat beats(run_.state);
    return capture_on_gpu(gpu_, model, capturing);
  }
  void write(const Trace& trace, const std::filesystem::path& file) const {
    if (options_.rank == 0) write_atomically(file, to_yaml(trace));
  }

  const RankContext& run_;
  const RankOptions& options_;
  const GpuOptions& gpu_;
  Library& library_;
  std::set<std::filesystem::path> written_;
};

}  // namespace

void capture_on_gpus(const RankContext& run, const RankOptions& options, const GpuOptions& gpu,
                     const Validation& validation, Library& library) {
  TraceCaptures captures(run, options, gpu, library);
  for (const NetworkVariant& variant :
       std::set<NetworkVariant>(validation.variants.begin(), validation.variants.end()))
    captures.capture_network(variant);
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    if (!validation.partitions[i].empty()) captures.capture_part(validation, i);
  }
  barrier(run.transport);
}

namespace {

constexpr const char* kUnlistedDevice = "h200";
constexpr std::int64_t kMaxElements = 1 << 24;  // largest measured all-reduce: 64 MiB

class GpuRank {
 public:
  GpuRank(const RankOptions& options, GpuOptions gpu, bool nccl, Store& store, const RankContext& run)
      : options_(options),
        gpu_(gpu),
        run_(run),
        backend_(make_cudnn_backend(gpu)),
        nccl_(store, {.device = gpu.device,
                      .rank = options.rank,
                      .timeout = options.timeout,
                      .on_wait =
                          [&state = run.state, program = std::this_thread::get_id()] {
                            auto& beat = std::this_thread::get_id() == program ? state.heartbeat
                                                                               : state.collectives_heartbeat;
                            beat.fetch_add(1, std::memory_order_relaxed);
                          }}),
        uses_nccl_(nccl),
        parts_(*backend_, RankId(options.rank)) {}

  void run() {
    reported([this] { measure_and_run(); });
  }

 private:
  /// Calls `work`. Its error is written at once: unwinding joins threads and leaves communicators, and if one
  /// of these crashes or hangs, the cause would be lost.
  template <class Work>
  void reported(const Work& work) const {
    try {
      work();
    } catch (const std::exception& error) {
      write_rank_error(options_, error);
      throw;
    }
  }

  std::function<void(std::exception_ptr)> write_failure() const {
    return [this](const std::exception_ptr& failure) {
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& error) {
        write_rank_error(options_, error);
      }
    };
  }

  /// Makes the device of this rank's part of a partitioned network (RunResources::device).
  std::function<std::unique_ptr<RankDevice>(std::size_t, const Experiment&)> own_device(
      const Validation& validation) {
    return [this, &validation](std::size_t index, const Experiment& experiment) {
      return parts_.device(experiment, shard_trace_file(run_.folder, validation.variants[index],
                                                        validation.partitions[index]));
    };
  }

  void measure_and_run() {
    const Validation validation =
        read_validation(options_.validation, options_.ranks, placeholder_platform(run_.cluster));
    Library library;
    // Traces first: they are of use even where communication fails.
    capture_on_gpus(run_, options_, gpu_, validation, library);
    measure_links();
    if (any_plan(validation, &Plan::compresses)) time_compression(validation, library);
    barrier(run_.transport);  // rank 0 has written the platforms, which all ranks read
    check(validation, library);
    if (options_.measure_only) return;
    wait_for_stage(run_.control, run_.state, 1);
    uses_nccl_ ? run_with_nccl(validation, library) : run_through_host(validation, library);
  }

  /// Makes the runs in `runs`, which is destroyed only when an error has been reported.
  void prepare(std::optional<PointRuns>& runs, const Validation& validation, Library& library,
               RunResources resources) {
    const SetupHeartbeat beats(run_.state);
    resources.device = own_device(validation);
    resources.on_failure = write_failure();
    runs.emplace(run_, validation, options_.validation, library, std::move(resources));
  }

  void run_through_host(const Validation& validation, Library& library) {
    std::optional<PointRuns> runs;
    reported([&] {
      prepare(runs, validation, library, {.backend = *backend_});
      runs->run_all();
      learn_all({run_, *backend_, runs->collective_thread(), runs->messages(), runs->completions(),
                 runs->last_run()},
                validation, library);
    });
  }

  /// Runs all points with collectives and messages by NCCL.
  void run_with_nccl(const Validation& validation, Library& library) {
    DevicePayloads payloads(*backend_->device_memory(), RankId(options_.rank), options_.ranks,
                            [this](RankId from, RankId to) { return nccl_.link(from, to); });
    const auto collectives = [this](const Plan& plan) { return nccl_.collectives_of(plan); };
    std::optional<PointRuns> runs;
    reported([&] {
      prepare(runs, validation, library,
              {.backend = *backend_, .make_collective_backend = collectives, .device_payloads = &payloads});
      runs->run_all();
      learn_all({run_, *backend_, runs->collective_thread(), runs->messages(), runs->completions(),
                 runs->last_run(), collectives, &payloads},
                validation, library);
      payloads.finish();
      barrier(run_.transport);  // before any rank ends the channel that announces payloads
    });
  }

  void measure_links() {
    const auto file = platform_file(run_.folder);
    if (measured_before(options_.validation, file)) return;
    set_status(run_.state, "measuring the links between GPUs");
    write_platform(measured_message_times(), file, uses_nccl_ ? "by NCCL" : "through the host");
  }

  std::vector<MessageTime> measured_message_times() {
    DeviceMemory& memory = *backend_->device_memory();
    const auto device_values = backend_->allocate(kMaxElements);
    backend_->finish();
    if (uses_nccl_) {
      std::vector<int> everyone;
      for (int rank = 0; rank < options_.ranks; ++rank) everyone.push_back(rank);
      NcclGroup& group = nccl_.group_of(everyone);
      return message_times_of(run_.transport, kMaxElements, [&](std::int64_t elements) {
        group.run({.kind = LibraryCollective::Kind::all_reduce}, device_values.get(), elements,
                  memory.record_event());
      });
    }
    const auto host_values = memory.host_memory(kMaxElements);
    return ring_times(run_.transport, host_values.get(), kMaxElements,
                      [&](std::size_t count, const auto& sum) {
                        memory.to_host(memory.record_event(), device_values.get(), host_values.get(), count);
                        sum();
                        memory.to_device(host_values.get(), device_values.get(), count);
                      });
  }

  /// Times compression on the host and the host's shared memory, because compressed gradients are copied to
  /// the host and sent through it even if NCCL carries other data.
  void time_compression(const Validation& validation, Library& library) {
    capture_compressions(run_, validation, options_.validation, library,
                         {.device = {backend_->device(), backend_->device_memory()}});
    const auto file = host_platform_file(run_.folder);
    if (measured_before(options_.validation, file)) return;
    set_status(run_.state, "measuring the links between hosts' memory");
    std::vector<float> values(kMaxElements);
    const auto times =
        ring_times(run_.transport, values.data(), kMaxElements, [](std::size_t, const auto& sum) { sum(); });
    write_platform(times, file, "of the host's memory");
  }

  void write_platform(const std::vector<MessageTime>& times, const std::filesystem::path& file,
                      const char* how) const {
    if (options_.rank != 0) return;
    const MeasuredPlatform platform{
        "measured",
        fmt::format("stepcast-gpu on {} ranks of {}, sums {}", options_.ranks, backend_->device(), how),
        run_.cluster, fitted_link_table(times), device_file()};
    write_atomically(file, platform_text(platform));
  }

  /// The file of the GPU in models/devices. The times of this run are all measured, so a GPU that has none
  /// ends nothing; the file then gives only the memory and the peak rates that reports show.
  std::string device_file() const {
    const std::string& named = options_.gpus.device_file;
    if (!named.empty()) return named;
    try {
      return device_file_of(backend_->device());
    } catch (const InputError& error) {
      fmt::print(stderr, "note: {}; the memory and peak rates of {} stand in platform.yaml\n", error.what(),
                 kUnlistedDevice);
      return kUnlistedDevice;
    }
  }

  void check(const Validation& validation, Library& library) const {
    for (std::size_t i = 0; i < validation.points.size(); ++i) {
      const std::string why =
          unsupported_on_gpus(measured_experiment(validation, i, run_.folder, {}, library), options_.ranks);
      if (why.empty()) continue;
      throw InputError(fmt::format("{}: point {} cannot be run for real: {}", options_.validation.scenario,
                                   validation.point(i).name, why));
    }
  }

  const RankOptions& options_;
  GpuOptions gpu_;
  const RankContext& run_;
  std::unique_ptr<Backend> backend_;
  NcclBackend nccl_;
  bool uses_nccl_;
  ShardDevices parts_;
};

}  // namespace

void set_rank_environment(const std::string& path) {
  if (path == "host") return;
  // A kernel that is loaded at its first launch may wait for running kernels, and NCCL's kernels wait for
  // other ranks. Source: CUDA's programming guide, "Lazy loading", on concurrent execution.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  // All ranks are on this machine, so NCCL's bootstrap needs the loopback alone; its warnings go to
  // the ranks' log.
  setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  setenv("NCCL_DEBUG", "WARN", 0);
  // Streams that share a hardware queue could wait for each other's collectives.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

void run_gpu_rank(const RankOptions& options) {
  GpuOptions gpu = DeviceOptions{options.gpus.options}.gpu_options();
  require_gpu(gpu.device);  // reports a missing GPU before any other error, and makes no context on the first
  const GpuPlace place = gpu_place(options.gpus.path, gpu.device, gpu_count(), options.rank, options.ranks);
  gpu.device = place.device;
  const auto control = SharedControlBlock::open(options.control, options.ranks);
  RankState& state = control->rank(RankId(options.rank));
  set_status(state, "startup");
  state.process.store(getpid());
  Store store(options.store, options.rank, options.timeout);
  const auto transport =
                 shared_memory_transport(control->ring_memory(0), RankId(options.rank), options.ranks, 0),
             messages =
                 shared_memory_transport(control->ring_memory(1), RankId(options.rank), options.ranks, 0);
  transport->count_waits(&state.heartbeat);
  PollingPolicy polling;
  const RankContext run{read_cluster("memory", options.ranks),
                        options.folder,
                        *control,
                        state,
                        polling,
                        *transport,
                        messages.get(),
                        {}};
  std::optional<SetupHeartbeat> beats(state);
  GpuRank rank(options, gpu, place.nccl, store, run);
  beats.reset();
  rank.run();
  set_status(state, "shutdown");
  barrier(*transport);
  state.finished.store(1);
}

}  // namespace stepcast
