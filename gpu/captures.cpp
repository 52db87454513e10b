#include "gpu/captures.hpp"

#include <fmt/format.h>

#include <set>

#include "kernels/gpu_capture.hpp"
#include "models/trace_text.hpp"
#include "report/atomic_file.hpp"
#include "validate/rank_part.hpp"

namespace stepcast {
namespace {

class Captures {
 public:
  Captures(const RankRun& run, const RankOptions& options, const GpuOptions& gpu, Library& library)
      : run_(run), options_(options), gpu_(gpu), library_(library) {}

  void whole(const Need& need) {
    say(run_.state, fmt::format("capturing {} with batch {}", need.model, need.batch).c_str());
    CaptureOptions capturing = options_of(trace_file(run_.folder, need), need.batch);
    capturing.part.accumulate = need.accumulates;
    write(capture(model_of(need), capturing), trace_file(run_.folder, need));
  }

  /// At the shapes of this rank's part; that of the first place, the largest, is written.
  void part(const Validation& validation, std::size_t index) {
    const Need& need = validation.needs[index];
    const auto file = cut_trace_file(run_.folder, need, validation.cuts[index]);
    const Model& model = model_of(need);
    const NetworkSharing sharing = cut_of(validation, index, model, options_.ranks);
    if (!sharing.simulated_only.empty() || !known_.insert(file).second) return;
    say(run_.state, fmt::format("capturing a part of {} with batch {}", need.model, need.batch).c_str());
    const RankPart own = rank_part(model, sharing, options_.rank);
    CaptureOptions capturing = options_of(file, own.options.batch);
    capturing.part = own.options.part;
    Trace trace = capture(own.model(), capturing);
    trace.batch = need.batch;
    write(trace, file);
  }

 private:
  const Model& model_of(const Need& need) {
    const YamlNode name = command_line_name(need.model);
    return library_.model(YamlValue(name, "model"));
  }

  CaptureOptions options_of(const std::filesystem::path& file, std::int64_t batch) const {
    CaptureOptions capturing{.name = file.stem().string(),
                             .command = fmt::format("stepcast-gpu run {} --ranks {}",
                                                    options_.validation.scenario, options_.ranks),
                             .batch = batch,
                             .steps = 12,
                             .warm_up = 5};
    capturing.progress = [this](double, Seconds) { run_.state.beat.fetch_add(1); };
    return capturing;
  }

  Trace capture(const Model& model, const CaptureOptions& capturing) const {
    barrier(run_.transport);
    return capture_on_gpu(gpu_, model, capturing);
  }
  void write(const Trace& trace, const std::filesystem::path& file) const {
    if (options_.rank == 0) write_atomically(file, to_yaml(trace));
  }

  const RankRun& run_;
  const RankOptions& options_;
  const GpuOptions& gpu_;
  Library& library_;
  std::set<std::filesystem::path> known_;
};

}  // namespace

void capture_on_gpus(const RankRun& run, const RankOptions& options, const GpuOptions& gpu,
                     const Validation& validation, Library& library) {
  Captures captures(run, options, gpu, library);
  for (const Need& need : std::set<Need>(validation.needs.begin(), validation.needs.end()))
    captures.whole(need);
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    if (!validation.cuts[i].empty()) captures.part(validation, i);
  }
  barrier(run.transport);
}

}  // namespace stepcast
