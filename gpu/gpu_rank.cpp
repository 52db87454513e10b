#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "core/error.hpp"
#include "gpu/captures.hpp"
#include "gpu/devices.hpp"
#include "gpu/measure_path.hpp"
#include "gpu/nccl_carrier.hpp"
#include "gpu/not_on_gpus.hpp"
#include "gpu/rank_options.hpp"
#include "kernels/gpu_capture.hpp"
#include "report/atomic_file.hpp"
#include "scenarios/data_files.hpp"
#include "validate/compression_times.hpp"
#include "validate/gpu_ranks.hpp"
#include "validate/learning_runs.hpp"
#include "validate/part_devices.hpp"
#include "validate/platform_text.hpp"
#include "validate/real_runs.hpp"
#include "validate/roles.hpp"
#include "validate/shared_rings.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kMostElements = 1 << 24;  // of a sum that is measured: 64 MiB

class GpuRank {
 public:
  GpuRank(const RankOptions& options, GpuOptions gpu, bool nccl, Store& store, const RankRun& run)
      : options_(options),
        gpu_(gpu),
        run_(run),
        backend_(make_cudnn_backend(gpu)),
        carrier_(store, {.device = gpu.device,
                         .rank = options.rank,
                         .patience = options.patience,
                         .beat =
                             [&state = run.state, program = std::this_thread::get_id()] {
                               auto& beat = std::this_thread::get_id() == program ? state.beat
                                                                                  : state.collectives_beat;
                               beat.fetch_add(1, std::memory_order_relaxed);
                             }}),
        nccl_(nccl),
        parts_(*backend_, options.rank) {}

  void all() {
    const Validation validation = read_validation(options_.validation, options_.ranks);
    Library library;
    say(run_.state, "measuring what lies between GPUs");
    write_platform(measured_path(), platform_file(run_.folder), nccl_ ? "by NCCL" : "through the host");
    capture_on_gpus(run_, options_, gpu_, validation, library);
    if (std::ranges::find(validation.compresses, true) != validation.compresses.end())
      time_compression(validation, library);
    check(validation, library);
    wait_at_gate(run_.control, run_.state, 1);
    if (nccl_) return run_joined(validation, library);
    RealRuns runs(run_, validation, options_.validation, library,
                  {.backend = *backend_, .device = own_device(validation)});
    runs.all();
    learn_all({run_, *backend_, runs.thread(), runs.mail(), runs.completions(), runs.runs()}, validation,
              library);
  }

 private:
  /// RealPlace::device: this rank's part of samples or layers that are cut.
  std::function<std::unique_ptr<RankDevice>(std::size_t, const Experiment&)> own_device(
      const Validation& validation) {
    return [this, &validation](std::size_t index, const Experiment& experiment) {
      return parts_.device(experiment,
                           cut_trace_file(run_.folder, validation.needs[index], validation.cuts[index]));
    };
  }

  /// Collectives and messages by NCCL.
  void run_joined(const Validation& validation, Library& library) {
    Parcels parcels(*backend_->device_memory(), options_.rank, options_.ranks,
                    [this](int from, int to) { return carrier_.link(from, to); });
    const auto carry = [this](const Plan& plan) { return carrier_.carry(plan); };
    RealRuns runs(
        run_, validation, options_.validation, library,
        {.backend = *backend_, .device = own_device(validation), .carry = carry, .parcels = &parcels});
    runs.all();
    learn_all({run_, *backend_, runs.thread(), runs.mail(), runs.completions(), runs.runs(), carry, &parcels},
              validation, library);
    parcels.finish();
    barrier(run_.transport);  // before anybody's mail, which announces parcels, ends
  }

  std::vector<MessageTime> measured_path() {
    DeviceMemory& memory = *backend_->device_memory();
    const auto there = backend_->allocate(kMostElements);
    backend_->finish();
    if (nccl_) {
      std::vector<int> everyone;
      for (int rank = 0; rank < options_.ranks; ++rank) everyone.push_back(rank);
      NcclGroup& group = carrier_.group_of(everyone);
      return message_times_of(run_.transport, kMostElements, [&](std::int64_t elements) {
        group.run({.kind = GroupCall::Kind::all_reduce}, there.get(), elements, memory.mark());
      });
    }
    const auto here = memory.host_memory(kMostElements);
    return ring_times(run_.transport, here.get(), kMostElements, [&](std::size_t count, const auto& sum) {
      memory.to_host(memory.mark(), there.get(), here.get(), count);
      sum();
      memory.to_device(here.get(), there.get(), count);
    });
  }

  /// Gradients are compressed by the host, which copies them, and travel by shared memory, whoever carries
  /// the others.
  void time_compression(const Validation& validation, Library& library) {
    capture_compressions(run_, validation, options_.validation, library,
                         {backend_->device(), backend_->device_memory()});
    std::vector<float> values(kMostElements);
    const auto times =
        ring_times(run_.transport, values.data(), kMostElements, [](std::size_t, const auto& sum) { sum(); });
    write_platform(times, host_platform_file(run_.folder), "of the host's memory");
    barrier(run_.transport);
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

  std::string device_file() const {
    const std::string& named = options_.gpus.device_file;
    return named.empty() ? device_file_of(backend_->device()) : named;
  }

  void check(const Validation& validation, Library& library) const {
    for (std::size_t i = 0; i < validation.points.size(); ++i) {
      const std::string why =
          why_not_on_gpus(measured_experiment(validation, i, run_.folder, {}, library), options_.ranks);
      if (why.empty()) continue;
      throw InputError(fmt::format("{}: point {} cannot be run for real: {}", options_.validation.scenario,
                                   validation.scenario.points[validation.points[i]].name, why));
    }
  }

  const RankOptions& options_;
  GpuOptions gpu_;
  const RankRun& run_;
  std::unique_ptr<Backend> backend_;
  NcclCarrier carrier_;
  bool nccl_;
  PartDevices parts_;
};

}  // namespace

void run_gpu_rank(const RankOptions& options) {
  GpuOptions gpu = DeviceOptions{options.gpus.words}.read();
  free_gpu_memory(gpu.device);  // no GPU: said before anything else is
  const GpuPlace place = gpu_place(options.gpus.path, gpu.device, gpu_count(), options.rank, options.ranks);
  gpu.device = place.device;
  const auto control = Control::open(options.control, options.ranks);
  RankState& state = control->rank(options.rank);
  say(state, "its start");
  state.process.store(getpid());
  const auto store = open_store(options.store, options.rank, options.patience);
  const auto transport = shared_memory_transport(control->rings(0), options.rank, options.ranks, 0),
             mail = shared_memory_transport(control->rings(1), options.rank, options.ranks, 0);
  transport->count_waits(&state.beat);
  Leisure leisure;
  const RankRun run{read_cluster("memory", options.ranks),
                    options.folder,
                    *control,
                    state,
                    leisure,
                    *transport,
                    mail.get(),
                    {}};
  GpuRank(options, gpu, place.nccl, *store, run).all();
  say(state, "its end");
  barrier(*transport);
  state.finished.store(1);
}

}  // namespace stepcast
