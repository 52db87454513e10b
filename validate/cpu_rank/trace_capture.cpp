#include "validate/cpu_rank/trace_capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/os/files.hpp"
#include "models/layer_times/trace.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/network/layer.hpp"
#include "report/results/results.hpp"
#include "runtime/devices/spatial_device.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "runtime/transport/transport.hpp"
#include "scenarios/reader/library.hpp"
#include "validate/capture/arithmetic_times.hpp"
#include "validate/capture/captured_exchanges.hpp"
#include "validate/capture/interleaved_capture.hpp"
#include "validate/capture/message_times.hpp"

namespace stepcast {
namespace {

/// The largest disturbance of a pair of steps on any rank; 1 if the host has moved the cores, so that the
/// pair does not count.
double worst_disturbance(const CaptureShared& shared, double own) {
  Transport& transport = shared.run.transport;
  const double worst = max_over_ranks(transport, own);
  CoreToCoreLatency* const cores = transport.core_latency();
  const bool moved = cores != nullptr && !cores->is_at_baseline();
  if (moved) cores->wait();
  shared.in_step.accept_pending(!moved || shared.options.accept_disturbed);
  return moved ? 1 : worst;
}

/// Options of the capture of a network variant, or of a shard of it.
CaptureOptions capture_options(const CaptureShared& shared, const NetworkVariant& variant) {
  const auto& [run, validation, options, place, in_step] = shared;
  CaptureOptions capturing;
  capturing.name = trace_file(run.folder, variant).stem().string();
  capturing.command = fmt::format("stepcast validate {} --ranks {}", options.scenario, run.cluster.ranks);
  capturing.batch = variant.batch;
  capturing.part.accumulate = variant.accumulates;
  if (!options.sleep) capturing.copies = variant.copies;
  capturing.warm_up = 1;
  capturing.disturbance = options.accept_disturbed ? 1e9 : kMaxDisturbance;
  capturing.attempts = 2 * kMaxAttempts;
  capturing.progress = [&run = shared.run](double, Seconds) { run.state.heartbeat.fetch_add(1); };
  if (options.sleep) return capturing;
  capturing.max_over_ranks = [&shared](double own) { return worst_disturbance(shared, own); };
  if (variant.exchanges)
    capturing.exchange.before_update = [&in_step = shared.in_step](Network& network) {
      const ParameterView& all = network.all_parameters();
      in_step.all_reduce({all.gradient, all.elements});
    };
  return capturing;
}

/// The all-reduces within the passes of tensor-parallel layers, which a capture makes because their copies
/// evict a pass's data from the caches. Without them with --sleep.
StepExchange sums_within_passes(const CaptureShared& shared) {
  if (shared.options.sleep) return {};
  return {
      .within_pass = [&in_step = shared.in_step](std::span<float> summed) { in_step.all_reduce(summed); }};
}

const Model& model_of(const NetworkVariant& variant, Library& library) {
  const YamlNode name = command_line_name(variant.model);
  return library.model(YamlValue(name, "model"));
}

std::filesystem::path own_file(const std::filesystem::path& file, int rank) {
  return file.parent_path() / fmt::format("{}-rank{}.yaml", file.stem().string(), rank);
}

std::vector<CaptureJob> whole_networks(const CaptureShared& shared,
                                       const std::set<NetworkVariant>& variants) {
  const RankContext& run = shared.run;
  std::vector<CaptureJob> all;
  for (const NetworkVariant& variant : variants) {
    CaptureJob one{variant,
                   fmt::format("capturing {} with batch {}", variant.model, variant.batch),
                   trace_file(run.folder, variant),
                   {},
                   nullptr};
    if (!shared.options.sleep || run.transport.is_rank_0())
      one.capture = std::make_unique<Capture>(shared.place.backend, model_of(variant, shared.place.library),
                                              capture_options(shared, variant));
    all.push_back(std::move(one));
  }
  return all;
}

/// Adds captures of spatial and tensor-parallel shards, at the shapes of the shard. Each rank captures its
/// own shard, including the halo copies.
void add_shards(const CaptureShared& shared, std::vector<CaptureJob>& all) {
  const auto& [run, validation, options, place, in_step] = shared;
  std::set<std::filesystem::path> known;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    if (validation.partitions[i].empty()) continue;
    const NetworkVariant& variant = validation.variants[i];
    const auto file = shard_trace_file(run.folder, variant, validation.partitions[i]);
    const Model& model = model_of(variant, place.library);
    const ModelPartition partition = validation.plan(i).partition;
    if (!partition.simulated_only.empty() || !known.insert(file).second) continue;
    CaptureJob one{variant, fmt::format("capturing a part of {} with batch {}", variant.model, variant.batch),
                   file, rank_shard(model, partition, run.transport.rank()), nullptr};
    CaptureOptions capturing = capture_options(shared, variant);
    const int same_samples = partition.ways * partition.tokens.context;
    const bool shares = has_parts_of_layers(partition) || partition.tokens.by_tensor;
    const bool replicas = !shares || same_samples < run.cluster.ranks || partition.tokens.context > 1;
    if (!replicas) capturing.exchange = sums_within_passes(shared);  // no other rank has these parameters
    if (!options.sleep) {
      one.exchanges =
          std::make_shared<CapturedExchanges>(model, partition, one.shard, run.transport, in_step);
      capturing.exchange.before_pass = [made = one.exchanges](Network& network, std::size_t layer,
                                                              Pass pass) {
        made->before_pass(network, layer, pass);
      };
      if (one.exchanges->tokens() != nullptr)
        capturing.exchange.before_update = [made = one.exchanges,
                                            sums = capturing.exchange.before_update](Network& network) {
          if (sums) sums(network);
          made->tokens()->before_update(network);
        };
    }
    capturing.name = file.stem().string();
    capturing.batch = one.shard.options.batch;
    capturing.part = one.shard.options.part;
    one.capture = std::make_unique<Capture>(place.backend, one.shard.model(), capturing);
    all.push_back(std::move(one));
  }
}

/// Rank 0 writes the traces of all ranks, because ranks of several machines share no disk.
void write_trace(const RankContext& run, const CaptureJob& one) {
  std::string text;
  if (one.capture != nullptr) {
    Trace trace = one.capture->trace();
    if (!one.shard.is_whole()) trace.batch = one.variant.batch;
    if (one.exchanges != nullptr) one.exchanges->take_copies(trace);
    text = to_yaml(trace);
  }
  const std::vector<std::string> texts = gather_texts_on_rank_0(run.transport, text);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (!texts[rank].empty()) write_atomically(own_file(one.file, rank), texts[rank]);
  }
}

/// True if all ranks have shards of the same shape. Otherwise the shard of rank 0, the largest, represents
/// all.
bool have_same_shapes(Transport& transport, const CaptureJob& one) {
  if (one.shard.is_whole()) return true;
  std::vector<double> own;
  for (const Layer& layer : one.shard.model().layers) own.push_back(elements(layer.output));
  const auto all = gather_on_rank_0(transport, own);
  return std::ranges::all_of(all, [&](const auto& other) { return other == own; });
}

/// The arithmetic of all strategies that train the whole network of a capture, or exchange its parts with
/// servers.
std::vector<TimedArithmetic> arithmetic_of(const CaptureShared& shared, const NetworkVariant& variant,
                                           const Slice& whole) {
  const Validation& validation = shared.validation;
  std::map<std::string, TimedArithmetic> by_name;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const bool servers = validation.plan(i).partition.form == ModelPartition::Form::machines;
    if (validation.variants[i] != variant || !(validation.partitions[i].empty() || servers)) continue;
    for (TimedArithmetic& one : arithmetic_of(validation.strategy(i), whole, shared.run.transport))
      by_name.try_emplace(one.name, one);
  }
  std::vector<TimedArithmetic> all;
  for (auto& [name, one] : by_name) all.push_back(std::move(one));
  return all;
}

/// Whether a server and a worker that trains this network exchange messages over memory that ranks share.
bool has_servers(const CaptureShared& shared, const NetworkVariant& variant) {
  if (shared.run.cluster.kind != Cluster::Kind::memory || shared.run.message_transport == nullptr)
    return false;
  const Validation& validation = shared.validation;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const bool servers = std::ranges::any_of(validation.plan(i).roles, std::logical_not(), &Role::training);
    if (validation.variants[i] == variant && servers) return true;
  }
  return false;
}

/// Puts measurements into the file of links, in place of those of the forecast before. Called by all ranks.
/// @param old  true for those that are replaced
void replace_links(const RankContext& run, const LinkMeasurements& links,
                   bool (*old)(const LinkMeasurement&)) {
  if (!run.transport.is_rank_0()) return;
  const auto file = links_file(run.folder);
  LinkMeasurements all = read_link_measurements(file);
  std::erase_if(all, old);
  all.insert(all.end(), links.begin(), links.end());
  write_atomically(file, to_json_lines(to_results(all)));
}

constexpr int kArithmeticRepeats = 16, kFewestArithmeticRepeats = 3;  // for all forecasts, for one

/// Times the arithmetic of all strategies that train these networks, whole, and writes it to the measured
/// links.
/// @return on rank 0, by file of the trace: time to read or write an array of the parameters [s]
std::map<std::filesystem::path, double> time_arithmetic_of(const CaptureShared& shared,
                                                           const std::vector<CaptureJob>& all) {
  constexpr double kSumArrays = 5;  // a copy reads one and writes one, an addition reads two and writes one
  const RankContext& run = shared.run;
  const int repeats = std::max(kArithmeticRepeats / shared.options.forecasts, kFewestArithmeticRepeats);
  std::map<std::filesystem::path, double> arrays;
  LinkMeasurements links;
  for (const CaptureJob& one : all) {
    if (!one.shard.is_whole() || one.variant.accumulates || one.capture == nullptr) continue;
    Network& network = *one.capture->network();
    const Slice whole{0, trainable_parameters(network.model())};
    const auto progress = [&run](const std::string& name) {
      set_status(run.state, ("timing the arithmetic of a strategy: " + name).c_str());
    };
    for (const LinkMeasurement& timed :
         time_arithmetic(run.transport, network, one.file.stem().string(),
                         arithmetic_of(shared, one.variant, whole), repeats, progress)) {
      if (timed.algorithm == kSumOfGradients) arrays[one.file] = timed.seconds / kSumArrays;
      links.push_back(timed);
    }
  }
  replace_links(run, links,
                [](const LinkMeasurement& old) { return old.what == LinkMeasurement::What::arithmetic; });
  return arrays;
}

/// Times messages between servers and the workers that train these networks, and adds them to the measured
/// links.
void time_server_messages(const CaptureShared& shared, const std::vector<CaptureJob>& all) {
  const RankContext& run = shared.run;
  for (const CaptureJob& one : all) {
    if (!one.shard.is_whole() || one.variant.accumulates || one.capture == nullptr ||
        !has_servers(shared, one.variant))
      continue;
    const auto progress = [&run] { set_status(run.state, "timing messages between programs"); };
    for (const LinkMeasurement& message : time_program_messages(run, *one.capture->network(), progress))
      append_line(links_file(run.folder), to_json_line(message));
  }
}

double update_seconds(const Trace& trace) {
  double sum = 0;
  for (const LayerTrace& layer : trace.layers) sum += median(layer.update.seconds).value;
  return sum;
}

/// Called by rank 0: joins the samples of all ranks in one trace.
/// @param array  time to read or write an array of the parameters [s]; 0: not measured
void join_ranks(const std::filesystem::path& file, int ranks, double array, Library& library) {
  const auto trace_of = [&](int rank) {
    return library.trace(YamlValue(command_line_name(own_file(file, rank).string()), "trace"));
  };
  Trace all = trace_of(0);
  for (int rank = 1; rank < ranks; ++rank) join(all, trace_of(rank));
  if (array > 0) all.update_arrays = std::clamp(update_seconds(all) / array, 1.0, 100.0);
  write_atomically(file, to_yaml(all));
}

}  // namespace

/// Each captured step includes the gradient all-reduce that a training step has. The samples of all ranks are
/// kept apart, because a simulated worker replays the steps of its own rank: cores of a shared machine are
/// not equally fast. The captures are interleaved, as the runs of points are, because the speed of a shared
/// machine changes within seconds.
TraceCaptures::TraceCaptures(const RankContext& run, const Validation& validation,
                             const ValidationOptions& options, const CapturePlace& place)
    : place_(place),
      in_step_(run.transport, run.polling),
      shared_{run, validation, options, place_, in_step_},
      jobs_(whole_networks(shared_, {validation.variants.begin(), validation.variants.end()})) {
  add_shards(shared_, jobs_);
  turns_ = plan_turns(run, options.sleep, options.forecasts, jobs_);
}

void TraceCaptures::take_turns(double share) {
  for (; turn_ < share * turns_; ++turn_)
    capture_turn(shared_.run, place_.speed, jobs_[turn_ % jobs_.size()]);
}

/// Lets captures that have too few undisturbed pairs take more turns: on a shared machine most steps may be
/// disturbed for some seconds.
void TraceCaptures::take_missing_turns() {
  constexpr int kMostTurns = 30;  // of one capture
  for (const CaptureJob& one : jobs_) {
    for (int more = 0; !shared_.options.sleep && more < kMostTurns && !one.capture->has_enough(); ++more)
      capture_turn(shared_.run, place_.speed, one);
  }
}

void TraceCaptures::write() {
  take_missing_turns();
  const ComputeScope computing(&shared_.run.polling);  // threads that carry messages of runs must not poll
  const auto& [run, validation, options, place, in_step] = shared_;
  replace_links(run, in_step_.take_rows(), [](const LinkMeasurement& old) { return old.in_step; });
  for (const CaptureJob& one : jobs_) write_trace(run, one);
  time_compressions();
  if (!options.sleep) {
    // Once, because the messages of runs have a thread of their own from then on.
    if (std::exchange(first_, false)) time_server_messages(shared_, jobs_);
    arrays_ = time_arithmetic_of(shared_, jobs_);
  }
  barrier(run.transport);
  Library library;  // reads the files of this call: a library reads each file once
  for (const CaptureJob& one : jobs_) {
    const int ranks = !options.sleep && have_same_shapes(run.transport, one) ? run.transport.ranks() : 1;
    if (run.transport.is_rank_0()) join_ranks(one.file, ranks, arrays_[one.file], library);
  }
}

void TraceCaptures::time_compressions() {
  const auto& [run, validation, options, place, in_step] = shared_;
  const auto network_of = [this](const NetworkVariant& variant) -> Network* {
    const auto job = std::ranges::find_if(jobs_, [&](const CaptureJob& one) {
      return one.variant == variant && one.shard.is_whole() && one.capture != nullptr;
    });
    return job == jobs_.end() ? nullptr : job->capture->network().get();
  };
  capture_compressions(run, validation, options, place_.library,
                       {.network = options.sleep ? nullptr : std::function(network_of)});
}

CapturedNetworks TraceCaptures::networks() const {
  CapturedNetworks networks;
  for (const CaptureJob& one : jobs_) {
    if (shared_.options.sleep || one.variant.accumulates) continue;
    const std::shared_ptr<Network> network = one.capture->network();
    if (!one.shard.is_whole()) {
      networks.shards[one.file] = {one.shard, network};
      continue;
    }
    network->fill_with_synthetic_data(1 + shared_.run.transport.rank().value);
    networks.whole[one.variant] = network;
  }
  return networks;
}

}  // namespace stepcast
