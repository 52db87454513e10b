#include "strategies/model_parallel/layer_segments.hpp"

#include <algorithm>

#include "models/layer_times/trace.hpp"

namespace stepcast {
namespace {

// The segments of a layer. Forward passes go up through the numbers, backward passes down:
//
//   segment  forward   backward                 backward, where a sum of error signals follows
//   3i       interior  border of backward-data  backward-weights
//   3i + 1   border    interior                 backward-data
//   3i + 2             backward-weights
struct SegmentSeconds {
  double forward[kSegmentsPerLayer] = {}, backward[kSegmentsPerLayer] = {};
};

/// Seconds of the two parts of a pass.
struct Split {
  double interior, border;
};

/// Divides the time of a pass.
/// @param launch  seconds of the launches of its kernels
/// @param share   of the border; @param sides  number of the border's kernels
Split split(double seconds, double share, double launch, int sides) {
  if (share <= 0) return {seconds, 0};
  const double fixed = std::min(seconds, launch), work = seconds - fixed;
  return {share < 1 ? fixed + (1 - share) * work : 0, sides * fixed + std::min(share, 1.0) * work};
}

/// Seconds of the passes of one layer in one step.
struct PassSeconds {
  double forward, backward_data, backward_weights, update;
};

/// Divides the passes of a layer into segments.
SegmentSeconds divided(const PassSeconds& passes, const LayerCost& cost, Seconds launch,
                       const LayerCalls& calls, bool overlap) {
  const auto divide = [&](double seconds, const PassCost& pass, double share) {
    return split(seconds, overlap ? share : 0, pass.kernels * launch.value, calls.sides);
  };
  const Split forward = divide(passes.forward, cost.forward, calls.forward_border);
  const bool sum_follows = !calls.after_backward.empty();
  const Split data =
      divide(passes.backward_data, cost.backward_data, sum_follows ? 0 : calls.backward_border);
  SegmentSeconds segments;
  segments.forward[0] = forward.interior;
  segments.forward[1] = forward.border;
  segments.backward[1] = data.interior;
  segments.backward[0] = sum_follows ? passes.backward_weights : data.border;
  segments.backward[2] = sum_follows ? 0 : passes.backward_weights;
  return segments;
}

void append(std::vector<LayerSeconds>& into, const SegmentSeconds& segments, double update) {
  for (int i = 0; i < kSegmentsPerLayer; ++i)
    into.push_back({segments.forward[i], segments.backward[i], i == 0 ? update : 0});
}

/// Divides the host's times of the layers among their segments, in proportion to the device's times.
std::vector<LayerSeconds> divided_host(const std::vector<LayerSeconds>& layers,
                                       const std::vector<LayerSeconds>& segments) {
  std::vector<LayerSeconds> host;
  for (std::size_t i = 0; i < kSegmentsPerLayer * layers.size(); ++i) {
    const std::size_t layer = i / kSegmentsPerLayer, first = kSegmentsPerLayer * layer;
    const auto divide = [&](double LayerSeconds::*pass) {
      double all = 0;
      for (std::size_t k = first; k < first + kSegmentsPerLayer; ++k) all += segments[k].*pass;
      return layers[layer].*pass * (all > 0 ? segments[i].*pass / all : i == first ? 1 : 0);
    };
    host.push_back(
        {divide(&LayerSeconds::forward), divide(&LayerSeconds::backward), divide(&LayerSeconds::update)});
  }
  return host;
}

double at(const PassSamples& pass, std::size_t i) {
  return pass.seconds.empty() ? 0 : pass.seconds[i % pass.seconds.size()];
}

/// Appends steps while going through the layers of a pass.
class PassBuilder {
 public:
  explicit PassBuilder(std::vector<OverlapSegment>& steps) : steps_(steps) { steps_.emplace_back(); }

  void call(const Call& call, LayerRange overlapped = {}) {
    OverlapSegment next;
    next.call = call;
    next.overlapped = overlapped;
    steps_.push_back(next);
  }
  void calls(const std::vector<Call>& calls) {
    for (const Call& one : calls) call(one);
  }
  /// Adds the segments that come next, adjacent to those before.
  void run(LayerRange segments) {
    LayerRange& after = steps_.back().after;
    if (after.first == after.last) after = segments;
    after = {std::min(after.first, segments.first), std::max(after.last, segments.last)};
  }
  void sums(const std::vector<CollectiveId>& sums) {
    if (sums.empty()) return;
    steps_.back().sums = sums;
    steps_.emplace_back();
  }

 private:
  std::vector<OverlapSegment>& steps_;
};

void forward_layer(PassBuilder& pass, const LayerCalls& calls, int layer, bool overlap) {
  const int first = kSegmentsPerLayer * layer, last = first + kSegmentsPerLayer;
  pass.calls(calls.before_forward);
  if (!calls.forward_halo.collective.exists()) {
    pass.run({first, last});
  } else {
    pass.call(calls.forward_halo, overlap ? LayerRange{first, first + 1} : LayerRange{});
    pass.run({overlap ? first + 1 : first, last});
  }
  pass.calls(calls.after_forward);
}

void backward_layer(PassBuilder& pass, const LayerCalls& calls, int layer, bool overlap) {
  const int first = kSegmentsPerLayer * layer, last = first + kSegmentsPerLayer;
  pass.calls(calls.before_backward);
  if (!calls.after_backward.empty()) {
    if (calls.backward_halo.collective.exists()) pass.call(calls.backward_halo);
    const LayerRange data{first + 1, last};
    for (std::size_t i = 0; i < calls.during_backward.size(); ++i)
      pass.call(calls.during_backward[i], i == 0 && overlap ? data : LayerRange{});
    if (calls.during_backward.empty() || !overlap) pass.run(data);
    for (std::size_t i = 0; i < calls.after_backward.size(); ++i)
      pass.call(calls.after_backward[i], i == 0 && overlap ? LayerRange{first, first + 1} : LayerRange{});
    if (!overlap) pass.run({first, first + 1});
  } else if (calls.backward_halo.collective.exists()) {
    pass.call(calls.backward_halo, overlap ? LayerRange{first + 1, last} : LayerRange{});
    pass.run({first, overlap ? first + 1 : last});
  } else {
    pass.run({first, last});
  }
}

}  // namespace

Workload segmented_workload(const Trace& times, const std::vector<LayerCost>& costs, const Device& device,
                            const std::vector<LayerCalls>& calls, bool overlap) {
  Workload workload;
  workload.samples.resize(samples_in(times));
  workload.sample_ranks = times.ranks;
  for (std::size_t i = 0; i < times.layers.size(); ++i) {
    const LayerTrace& layer = times.layers[i];
    for (int segment = 0; segment < kSegmentsPerLayer; ++segment) workload.layer_names.push_back(layer.name);
    const auto add = [&](std::vector<LayerSeconds>& into, const PassSeconds& passes) {
      append(into, divided(passes, costs[i], device.kernel_gap(), calls[i], overlap), passes.update);
    };
    add(workload.median, {median(layer.forward.seconds).value, median(layer.backward_data.seconds).value,
                          median(layer.backward_weights.seconds).value, median(layer.update.seconds).value});
    for (std::size_t sample = 0; sample < workload.samples.size(); ++sample) {
      add(workload.samples[sample], {at(layer.forward, sample), at(layer.backward_data, sample),
                                     at(layer.backward_weights, sample), at(layer.update, sample)});
    }
  }
  workload.host = divided_host(host_times(times), workload.median);
  workload.statistics.resize(workload.median.size());
  return workload;
}

void scale(Workload& workload, double factor) {
  const auto scale_layers = [factor](std::vector<LayerSeconds>& layers) {
    for (LayerSeconds& layer : layers)
      layer = {factor * layer.forward, factor * layer.backward, factor * layer.update};
  };
  scale_layers(workload.median);
  for (auto& sample : workload.samples) scale_layers(sample);
}

PassSegments make_passes(const std::vector<LayerCalls>& calls, LayerRange layers,
                         const std::vector<std::vector<CollectiveId>>& sums, bool overlap) {
  PassSegments made;
  PassBuilder forward(made.forward), backward(made.backward);
  for (int layer = layers.first; layer < layers.last; ++layer)
    forward_layer(forward, calls[layer], layer, overlap);
  for (int layer = layers.last - 1; layer >= layers.first; --layer) {
    backward_layer(backward, calls[layer], layer, overlap);
    backward.sums(sums[layer]);
  }
  return made;
}

LayerRange segments_of(LayerRange layers) {
  return {kSegmentsPerLayer * layers.first, kSegmentsPerLayer * layers.last};
}

SubProgram run_pass(Worker& worker, const PassSegments& passes, const PassRun& run,
                    std::vector<Pending>& sums) {
  for (const OverlapSegment& step : passes.of(run.pass)) {
    const bool exchanges = step.call.collective.exists();
    Pending exchange;
    LocalWork packing;  // real runs pack inside the exchange
    packing.name = "pack";
    packing.duration = step.call.packing;
    const bool packs = exchanges && packing.duration.value > 0;
    if (exchanges && run.exchange_overhead.value > 0) co_await worker.pause(run.exchange_overhead);
    if (packs) co_await worker.local(packing);
    if (exchanges) exchange = worker.start_collective(step.call.collective);
    if (!step.overlapped.empty()) co_await worker.finished(worker.start_compute(run.pass, step.overlapped));
    worker.mark("compute");
    if (exchanges) co_await worker.finished(std::move(exchange));
    if (exchanges) worker.mark(step.call.what);
    if (exchanges && run.synchronizes) worker.synchronize();
    if (packs) co_await worker.local(packing);
    if (!step.after.empty()) co_await worker.finished(worker.start_compute(run.pass, step.after));
    for (std::size_t i = 0; run.sums && i < step.sums.size(); ++i) {
      sums.push_back(worker.start_collective(step.sums[i]));
      if (run.waits) co_await worker.finished(std::move(sums.back()));
      if (run.waits) sums.pop_back();
    }
  }
}

namespace {

using Steps = std::vector<OverlapSegment>;

/// The end of the steps that begin at `first`: an exchange, and all work up to the next exchange.
std::size_t end_of_group(const Steps& steps, std::size_t first) {
  std::size_t end = std::min(first + 1, steps.size());
  while (end < steps.size() && !steps[end].call.collective.exists()) ++end;
  return end;
}

}  // namespace

/// Steps of one of two passes. g++ 12 warns of a coroutine with a local of an unnamed namespace.
struct PassInTurn {
  const Steps& steps;
  Work pass{};
  bool sums = false;
  std::size_t first = 0, end = 0;  ///< the group whose exchange has been started
  Pending exchange = {};
};

namespace {

/// Starts the exchange of the next group, if there is one.
SubProgram start_next(Worker& worker, Seconds overhead, PassInTurn& turn) {
  turn.first = turn.end;
  turn.end = end_of_group(turn.steps, turn.first);
  if (turn.first == turn.end || !turn.steps[turn.first].call.collective.exists()) co_return;
  if (overhead.value > 0) co_await worker.pause(overhead);
  turn.exchange = worker.start_collective(turn.steps[turn.first].call.collective);
}

/// Waits for the exchange of the group, and does its work.
SubProgram work(Worker& worker, PassInTurn& turn, std::vector<Pending>& sums) {
  if (turn.first < turn.end && turn.steps[turn.first].call.collective.exists())
    co_await worker.finished(std::move(turn.exchange));
  for (std::size_t i = turn.first; i < turn.end; ++i) {
    const OverlapSegment& step = turn.steps[i];
    for (const LayerRange part : {step.overlapped, step.after})
      if (!part.empty()) co_await worker.finished(worker.start_compute(turn.pass, part));
    for (std::size_t k = 0; turn.sums && k < step.sums.size(); ++k)
      sums.push_back(worker.start_collective(step.sums[k]));
  }
}

}  // namespace

SubProgram run_together(Worker& worker, const PassSegments& forward, const PassSegments& backward,
                        const PassRun& run, std::vector<Pending>& sums) {
  PassInTurn first{forward.forward, Work::forward}, second{backward.backward, Work::backward, run.sums};
  co_await start_next(worker, run.exchange_overhead, first);
  while (first.first < first.end || second.end < second.steps.size()) {
    co_await start_next(worker, run.exchange_overhead, second);
    co_await work(worker, first, sums);
    co_await start_next(worker, run.exchange_overhead, first);
    co_await work(worker, second, sums);
  }
}

}  // namespace stepcast
