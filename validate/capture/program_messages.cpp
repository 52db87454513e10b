#include "validate/capture/program_messages.hpp"

#include <memory>
#include <set>
#include <span>

#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/p2p/point_to_point.hpp"

namespace stepcast {
namespace {

constexpr int kRoundTrips = 16;  // after one that is not counted
constexpr int kExchangeTag = 1;

class ServerExchange {
 public:
  ServerExchange(Transport& messages, PollingPolicy& polling)
      : polling_(polling),
        rank_(messages.rank()),
        completions_(&polling, [&messages] { messages.wake_to_poll(); }),
        messages_(messages) {
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
    if (rank_ == 1) wait_for(arrival);
    Message message;
    message.tag = kExchangeTag;
    message.buffer.array = Array::parameters;
    messages_.send(RankId(1 - rank_), message, sent, departure);
    wait_for(arrival);
    const double seconds = now().wall - begin.wall;
    wait_for(departure);  // acknowledged: nothing is under way any more
    return seconds;
  }

 private:
  void wait_for(const Pending& operation) {
    while (!operation->done) {
      const Pending next = completions_.next();
      if (next == nullptr) continue;
      if (next->error) std::rethrow_exception(next->error);
      next->complete();
    }
  }

  PollingPolicy& polling_;
  int rank_;
  CompletionQueue completions_;
  PointToPoint messages_;  // declared last: its thread uses the other members
};

}  // namespace

std::vector<Row> time_program_messages(const RankContext& run, Network& network,
                                       const std::function<void()>& progress) {
  const ParameterView& all = network.all_parameters();
  const auto elements = static_cast<std::size_t>(all.elements);
  // What a server receives and sends. A worker receives into its gradients, so that it keeps its parameters.
  std::vector<float> update(elements), center(elements);
  ServerExchange exchange(*run.message_transport, run.polling);
  std::vector<Row> rows;
  for (const std::size_t size : std::set<std::size_t>{64, elements / 64, elements / 8, elements}) {
    if (size == 0 || size > elements) continue;
    std::vector<double> seconds;
    for (int repeat = 0; repeat <= kRoundTrips; ++repeat) {
      progress();
      if (run.transport.rank() == 0) network.step();
      barrier(run.transport);
      if (run.transport.rank() > 1) continue;
      const std::span<float> gradients(all.gradient, size);
      const double one = run.transport.rank() == 0
                             ? exchange.round_trip(gradients, gradients)
                             : exchange.round_trip({center.data(), size}, {update.data(), size});
      if (repeat > 0) seconds.push_back(one / 2);
    }
    if (run.transport.rank() != 0) continue;
    Row row;
    row.set("what", std::string("program_message"));
    row.set("bytes", 4.0 * static_cast<double>(size));
    row.set("seconds", median_of(seconds));
    row.set("low", quantile(seconds, 0.25));
    row.set("high", quantile(seconds, 0.75));
    row.set("repeats", std::int64_t{kRoundTrips});
    rows.push_back(row);
  }
  barrier(run.transport);  // until then, the messages of other ranks may need this one's thread
  return rows;
}

}  // namespace stepcast
