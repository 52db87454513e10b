#include "validate/capture/message_times.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/p2p/point_to_point.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

namespace {

constexpr int kRoundTrips = 16;  // after one that is not counted
constexpr MessageTag kExchangeTag{1};

class ServerExchange {
 public:
  ServerExchange(Transport& messages, PollingPolicy& polling, RankState& state)
      : polling_(polling),
        heartbeat_(state.heartbeat),
        rank_(messages.rank()),
        completions_(&polling, [&messages] { messages.wake_to_poll(); }),
        messages_(messages, &state.messages_heartbeat) {
    messages_.begin_run(1, completions_);
  }
  ServerExchange(const ServerExchange&) = delete;
  ~ServerExchange() { messages_.end_run(); }

  /// Time of a round trip on rank 0, and of this rank's part of it on rank 1 [s].
  double round_trip(std::span<const float> sent, std::span<float> received) {
    const ComputeScope computing(&polling_);
    const auto arrival = std::make_shared<Operation>(), departure = std::make_shared<Operation>();
    messages_.receive(kExchangeTag, kAnyone, arrival, [received](const Buffer&) { return received; });
    const Instant begin = now();
    if (rank_ == RankId{1}) wait_for(arrival);
    Message message;
    message.tag = kExchangeTag;
    message.buffer.array = Array::parameters;
    messages_.send(RankId(1 - rank_.value), message, sent, departure);
    wait_for(arrival);
    const double seconds = now().wall - begin.wall;
    wait_for(departure);  // acknowledged: nothing is under way any more
    return seconds;
  }

 private:
  void wait_for(const Pending& operation) {
    while (!operation->done) {
      const Pending next = completions_.next();
      heartbeat_.fetch_add(1, std::memory_order_relaxed);  // the other rank may hang, not this one
      if (next == nullptr) continue;
      if (next->error) std::rethrow_exception(next->error);
      next->complete();
    }
  }

  PollingPolicy& polling_;
  std::atomic<std::uint64_t>& heartbeat_;
  RankId rank_;
  CompletionQueue completions_;
  PointToPoint messages_;  // declared last: its thread uses the other members
};

}  // namespace

LinkMeasurements time_program_messages(const RankContext& run, Network& network,
                                       const std::function<void()>& progress) {
  const ParameterView& all = network.all_parameters();
  const std::size_t elements = all.elements;
  // What a server receives and sends. A worker receives into its gradients, so that it keeps its parameters.
  std::vector<float> update(elements), center(elements);
  ServerExchange exchange(*run.message_transport, run.polling, run.state);
  LinkMeasurements rows;
  for (const std::size_t size : std::set<std::size_t>{64, elements / 64, elements / 8, elements}) {
    if (size == 0 || size > elements) continue;
    std::vector<double> seconds;
    for (int repeat = 0; repeat <= kRoundTrips; ++repeat) {
      progress();
      if (run.transport.is_rank_0()) network.step();
      barrier(run.transport);
      if (run.transport.rank() > RankId{1}) continue;
      const std::span<float> gradients(all.gradient, size);
      const double one = run.transport.is_rank_0()
                             ? exchange.round_trip(gradients, gradients)
                             : exchange.round_trip({center.data(), size}, {update.data(), size});
      if (repeat > 0) seconds.push_back(one / 2);
    }
    if (!run.transport.is_rank_0()) continue;
    LinkMeasurement& one = rows.emplace_back(LinkMeasurement{LinkMeasurement::What::program_message});
    one.bytes = 4.0 * size;
    one.seconds = median_of(seconds);
    one.low = quantile(seconds, 0.25);
    one.high = quantile(seconds, 0.75);
    one.repeats = kRoundTrips;
  }
  barrier(run.transport);  // until then, the messages of other ranks may need this one's thread
  return rows;
}

InStepTimes::InStepTimes(Transport& transport, PollingPolicy& polling)
    : transport_(transport),
      polling_(polling),
      completions_(&polling, [&transport] { transport.wake_to_poll(); }),
      thread_(nullptr, &polling) {}

/// Executes work on the progress thread while the program waits. @return how long the program waited [s]
double InStepTimes::on_thread(const std::function<void()>& work) {
  const ComputeScope computing(&polling_);
  const Instant begin = now();
  thread_.submit([&] {
    auto operation = std::make_shared<Operation>();
    try {
      work();
    } catch (...) {
      operation->error = std::current_exception();
    }
    completions_.post(std::move(operation));
  });
  completions_.await_next();
  return now().wall - begin.wall;
}

void InStepTimes::all_reduce(std::span<float> summed) {
  const std::int64_t elements = summed.size();
  const auto rounds = rounds_of(ring_all_reduce({transport_.ranks(), 1}), transport_.rank().value, elements);
  const double seconds = on_thread([&] { execute_rounds(transport_, rounds, summed.data()); });
  pending_.emplace_back(elements, seconds);
}

double InStepTimes::exchange(const std::vector<Round>& round, float* memory, std::int64_t longest,
                             const std::function<void()>& pack, const std::function<void()>& unpack) {
  double packing = 0;
  const auto timed = [&packing](const std::function<void()>& work) {
    const Instant begin = now();
    work();
    packing += now().wall - begin.wall;
  };
  const double seconds = on_thread([&] {
    timed(pack);
    execute_rounds(transport_, round, memory);
    timed(unpack);
  });
  const int ranks = transport_.ranks();
  pending_.emplace_back(ranks * longest, (seconds - packing) * 2 * (ranks - 1));
  return packing;
}

void InStepTimes::accept_pending(bool counts) {
  for (const auto& [elements, seconds] : pending_) {
    if (counts) seconds_[elements].push_back(seconds);
  }
  pending_.clear();
}

LinkMeasurements InStepTimes::take_rows() {
  LinkMeasurements rows;
  for (const auto& [elements, own] : seconds_) {
    const auto ranks = gather_on_rank_0(transport_, own);
    if (ranks.empty()) continue;
    std::vector<double> seconds = ranks.front();
    for (const std::vector<double>& rank : ranks) {
      for (std::size_t i = 0; i < std::min(seconds.size(), rank.size()); ++i)
        seconds[i] = std::min(seconds[i], rank[i]);
    }
    LinkMeasurement& one = rows.emplace_back(LinkMeasurement{LinkMeasurement::What::all_reduce, "ring"});
    one.bytes = 4.0 * elements;
    one.seconds = uninterrupted_mean(seconds);
    one.low = quantile(seconds, 0.25);
    one.high = quantile(seconds, 0.75);
    one.repeats = seconds.size();
    one.in_step = true;
  }
  seconds_.clear();
  return rows;
}

namespace {

void add(PassSamples& pass, Seconds more) {
  for (double& seconds : pass.seconds) seconds += more.value;
  for (double& seconds : pass.cpu_seconds) seconds += more.value;
}

}  // namespace

void add_host_time(Trace& trace, int layer, Seconds forward, Seconds backward) {
  for (std::size_t i = layer; i < trace.layers.size(); ++i) {
    PassSamples& pass = trace.layers[i].forward;
    if (pass.seconds.empty()) continue;
    add(pass, forward);
    break;
  }
  for (int i = layer; i >= 0; --i) {
    LayerTrace& one = trace.layers.at(i);
    PassSamples& pass = one.backward_data.seconds.empty() ? one.backward_weights : one.backward_data;
    if (!pass.seconds.empty()) return add(pass, backward);
  }
}

Seconds message_host_time(const LinkMeasurements& links, Bytes size) {
  std::map<double, double> known{{0, 0}};
  for (const LinkMeasurement& one : links) {
    if (one.what == LinkMeasurement::What::message_host) known[one.bytes] = one.seconds / 2;
  }
  if (known.size() == 1) return {0};
  auto upper = known.lower_bound(size.value);
  if (upper == known.begin()) return {0};
  if (upper == known.end()) return {known.rbegin()->second * size.value / known.rbegin()->first};
  const auto lower = std::prev(upper);
  const double share = (size.value - lower->first) / (upper->first - lower->first);
  return {lower->second + share * (upper->second - lower->second)};
}

Trace with_messages(Trace trace, const Model& model, const ModelPartition& partition,
                    const std::function<Seconds(Bytes)>& host_time) {
  for (const LayerRange& stage : partition.stages) {
    if (stage.first == 0) continue;
    const StageBoundary boundary = boundary_before(model, stage.first, partition.micro_batch);
    const Seconds each = host_time({4.0 * boundary.size});
    for (const int layer : {stage.first - 1, stage.first}) add_host_time(trace, layer, each, each);
  }
  return trace;
}

}  // namespace stepcast
