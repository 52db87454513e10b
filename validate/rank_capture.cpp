#include "validate/rank_capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "kernels/synthetic.hpp"
#include "models/join_traces.hpp"
#include "models/layer_shapes.hpp"
#include "models/trace_text.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "scenarios/data_files.hpp"
#include "validate/capture_options.hpp"
#include "validate/capture_turns.hpp"
#include "validate/compression_times.hpp"
#include "validate/dealing.hpp"
#include "validate/gather.hpp"
#include "validate/repeats.hpp"
#include "validate/stage_trace.hpp"

namespace stepcast {
namespace {

const Model& model_of(const Need& need, Library& library) {
  const YamlNode name = command_line_name(need.model);
  return library.model(YamlValue(name, "model"));
}

std::filesystem::path own_file(const std::filesystem::path& file, int rank) {
  return file.parent_path() / fmt::format("{}-rank{}.yaml", file.stem().string(), rank);
}

std::vector<Turns> whole_networks(const CaptureShared& shared, const std::set<Need>& needs) {
  const RankRun& run = shared.run;
  std::vector<Turns> all;
  for (const Need& need : needs) {
    Turns one{need,
              fmt::format("capturing {} with batch {}", need.model, need.batch),
              trace_file(run.folder, need),
              {},
              nullptr};
    if (!shared.options.sleep || run.transport.rank() == 0)
      one.capture = std::make_unique<Capture>(shared.place.backend, model_of(need, shared.place.library),
                                              capture_options(shared, need));
    all.push_back(std::move(one));
  }
  return all;
}

/// Where whole samples are dealt out: copies before and after the messages.
std::function<void(Network&, Trace&)> copies_of_dealing(const Model& model, const NetworkSharing& sharing,
                                                        int rank) {
  return [&model, sharing, place = rank % device_count(sharing.cut.parts)](Network& network, Trace& trace) {
    Dealing dealing(network, model, sharing, place);
    const Seconds forward = dealing.host_time(true), backward = dealing.host_time(false);
    add_host_time(trace, static_cast<int>(sharing.cut.whole_from), forward, backward);
  };
}

/// Parts of networks whose samples or layers are cut, at the shapes of the part: each rank its own, with all
/// that it copies between its rows and those of neighbours.
void add_parts(const CaptureShared& shared, std::vector<Turns>& all) {
  const auto& [run, validation, options, place, sums] = shared;
  std::set<std::filesystem::path> known;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    if (validation.cuts[i].empty()) continue;
    const Need& need = validation.needs[i];
    const auto file = cut_trace_file(run.folder, need, validation.cuts[i]);
    const Model& model = model_of(need, place.library);
    const NetworkSharing sharing = cut_of(validation, i, model, run.cluster.ranks);
    if (!sharing.simulated_only.empty() || !known.insert(file).second) continue;
    Turns one{need, fmt::format("capturing a part of {} with batch {}", need.model, need.batch), file,
              rank_part(model, sharing, run.transport.rank()), nullptr};
    CaptureOptions capturing = capture_options(shared, need);
    const bool replicas = sharing.form != NetworkSharing::Form::blocks || sharing.ways < run.cluster.ranks;
    if (!replicas) capturing.exchange = sums_within_passes(shared);  // nobody else has these parameters
    capturing.name = file.stem().string();
    capturing.batch = one.part.options.batch;
    capturing.part = one.part.options.part;
    one.capture = std::make_unique<Capture>(place.backend, one.part.model(), capturing);
    if (one.part.of_samples && deals_samples(sharing, model))
      one.add_between = copies_of_dealing(model, sharing, run.transport.rank());
    all.push_back(std::move(one));
  }
}

/// @return the network; null where this rank only sleeps
std::unique_ptr<Network> write_trace(const RankRun& run, const Turns& one) {
  if (one.capture == nullptr) return nullptr;
  Trace trace = one.capture->trace();
  std::unique_ptr<Network> network = one.capture->take_network();
  if (!one.part.is_whole()) trace.batch = one.need.batch;
  if (one.add_between) one.add_between(*network, trace);
  write_atomically(own_file(one.file, run.transport.rank()), to_yaml(trace));
  return network;
}

/// Whether all ranks have parts of one shape; else that of the first, the largest, stands for all.
bool all_alike(Transport& transport, const Turns& one) {
  if (one.part.is_whole()) return true;
  std::vector<double> own;
  for (const Layer& layer : one.part.model().layers)
    own.push_back(static_cast<double>(elements(layer.output)));
  const auto all = gathered(transport, own);
  return std::ranges::all_of(all, [&](const auto& other) { return other == own; });
}

/// Rank 0: the samples of all ranks in one trace.
void join_ranks(const std::filesystem::path& file, int ranks, Library& library) {
  const auto trace_of = [&](int rank) {
    return library.trace(YamlValue(command_line_name(own_file(file, rank).string()), "trace"));
  };
  Trace all = trace_of(0);
  for (int rank = 1; rank < ranks; ++rank) join(all, trace_of(rank));
  write_atomically(file, to_yaml(all));
}

}  // namespace

/// All ranks at once, so that they share the machine as they will when they train, with the sum of gradients
/// in each step that training has; where they sleep instead, one. A worker replays steps of its own rank:
/// cores of a shared machine are not equally fast. Networks, and parts of them, take turns, as points will:
/// the speed of a shared machine changes within seconds.
CapturedNetworks capture_traces(const RankRun& run, const Validation& validation,
                                const ValidationOptions& options, const CapturePlace& place) {
  const std::set<Need> needs(validation.needs.begin(), validation.needs.end());
  SumTimes sums;
  const CaptureShared shared{run, validation, options, place, sums};
  std::vector<Turns> all = whole_networks(shared, needs);
  add_parts(shared, all);
  take_turns(run, place.speed, all);
  for (const Row& row : sums.rows(run.transport))
    append_line(run.folder / "links.jsonl", to_json_line({"calibrate", {}}, row));
  std::vector<std::unique_ptr<Network>> through;
  for (const Turns& one : all) through.push_back(write_trace(run, one));
  capture_compressions(run, validation, options, place.library);
  barrier(run.transport);
  for (const Turns& one : all) {
    const int ranks = !options.sleep && all_alike(run.transport, one) ? run.transport.ranks() : 1;
    if (run.transport.rank() == 0) join_ranks(one.file, ranks, place.library);
  }
  CapturedNetworks networks;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (options.sleep || all[i].need.accumulates) continue;
    if (!all[i].part.is_whole()) {
      networks.parts[all[i].file] = {std::move(all[i].part), std::move(through[i])};
      continue;
    }
    fill_with_synthetic_data(*through[i], static_cast<std::uint64_t>(1 + run.transport.rank()));
    networks.whole[all[i].need] = std::move(through[i]);
  }
  return networks;
}

}  // namespace stepcast
