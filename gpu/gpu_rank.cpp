#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "core/error.hpp"
#include "gpu/devices.hpp"
#include "gpu/measure_path.hpp"
#include "gpu/nccl_carrier.hpp"
#include "gpu/rank_options.hpp"
#include "kernels/gpu_capture.hpp"
#include "models/trace_text.hpp"
#include "report/atomic_file.hpp"
#include "scenarios/data_files.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "validate/gpu_ranks.hpp"
#include "validate/platform_text.hpp"
#include "validate/real_runs.hpp"
#include "validate/shared_rings.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kMostElements = 1 << 24;  // of a sum that is measured: 64 MiB

bool asks_mpi(const Plan& plan) {
  return std::ranges::any_of(
      plan.communicators, [](const Communicator& one) { return one.all_reduce.algorithm == Algorithm::mpi; });
}

/// What a point needs that GPUs here cannot, in words; empty: nothing.
std::string why_not_on_gpus(const Experiment& experiment, int ranks) {
  if (experiment.plan.sharing.form == NetworkSharing::Form::positions)
    return "samples cut over several devices are not there on GPUs";
  if (experiment.plan.sharing.form == NetworkSharing::Form::blocks || experiment.plan.sharing.ways > 1)
    return "layers that several devices share are not there on GPUs";
  if (experiment.learning) return "learning is not there on GPUs; the run is timed on synthetic data";
  if (asks_mpi(experiment.plan)) return "all_reduce: mpi is not there on GPUs, whose ranks know no MPI";
  return why_not_for_real(experiment.plan, ranks, false);
}

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
        nccl_(nccl) {}

  void all() {
    const Validation validation = read_validation(options_.validation, options_.ranks);
    Library library;
    say(run_.state, "measuring what lies between GPUs");
    write_platform(measured_path());
    capture(validation, library);
    check(validation, library);
    wait_at_gate(run_.control, run_.state, 1);
    if (nccl_) return run_joined(validation, library);
    RealRuns(run_, validation, options_.validation, library, {.backend = *backend_}).all();
  }

 private:
  /// Collectives and messages by NCCL.
  void run_joined(const Validation& validation, Library& library) {
    Parcels parcels(*backend_->device_memory(), options_.rank, options_.ranks,
                    [this](int from, int to) { return carrier_.link(from, to); });
    RealRuns runs(run_, validation, options_.validation, library,
                  {.backend = *backend_,
                   .carry = [this](const Plan& plan) { return carrier_.carry(plan); },
                   .parcels = &parcels});
    runs.all();
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
    const Schedule ring = ring_all_reduce({options_.ranks, 1});
    std::map<std::int64_t, std::vector<Round>> known;
    return message_times_of(run_.transport, kMostElements, [&](std::int64_t elements) {
      auto& rounds = known[elements];
      if (rounds.empty()) rounds = rounds_of(ring, options_.rank, elements);
      const auto count = static_cast<std::size_t>(elements);
      memory.to_host(memory.mark(), there.get(), here.get(), count);
      play(run_.transport, rounds, here.get());
      memory.to_device(here.get(), there.get(), count);
    });
  }

  void write_platform(const std::vector<MessageTime>& times) const {
    if (options_.rank != 0) return;
    const MeasuredPlatform platform{"measured",
                                    fmt::format("stepcast-gpu on {} ranks of {}, sums {}", options_.ranks,
                                                backend_->device(), nccl_ ? "by NCCL" : "through the host"),
                                    run_.cluster, fitted_link_table(times), device_file()};
    write_atomically(platform_file(run_.folder), platform_text(platform));
  }

  std::string device_file() const {
    const std::string& named = options_.gpus.device_file;
    return named.empty() ? device_file_of(backend_->device()) : named;
  }

  /// All ranks at once: those that share a GPU share it here as they will when they train.
  void capture(const Validation& validation, Library& library) {
    for (const Need& need : std::set<Need>(validation.needs.begin(), validation.needs.end())) {
      say(run_.state, fmt::format("capturing {} with batch {}", need.model, need.batch).c_str());
      barrier(run_.transport);
      CaptureOptions capturing{.name = trace_file(run_.folder, need).stem().string(),
                               .command = fmt::format("stepcast-gpu run {} --ranks {}",
                                                      options_.validation.scenario, options_.ranks),
                               .batch = need.batch,
                               .steps = 20,
                               .warm_up = 10};
      capturing.part.accumulate = need.accumulates;
      capturing.progress = [this](double, Seconds) { run_.state.beat.fetch_add(1); };
      const YamlNode name = command_line_name(need.model);
      const Trace trace = capture_on_gpu(gpu_, library.model(YamlValue(name, "model")), capturing);
      if (options_.rank == 0) write_atomically(trace_file(run_.folder, need), to_yaml(trace));
    }
    barrier(run_.transport);
  }

  void check(const Validation& validation, Library& library) const {
    for (std::size_t i = 0; i < validation.points.size(); ++i) {
      const std::string why =
          validation.compresses[i]
              ? "compressed gradients are not there on GPUs"
              : why_not_on_gpus(measured_experiment(validation, i, run_.folder, {}, library), options_.ranks);
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
