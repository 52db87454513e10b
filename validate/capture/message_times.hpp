#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/network/network.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/plan/plan.hpp"
#include "validate/measure/link_measurement.hpp"

namespace stepcast {

/// Times messages between programs as a server and its worker exchange them: rank 0 trains a step and sends
/// its gradients to rank 1, whose program receives them and sends as many parameters back. The sender's
/// program copies them, the threads of both ranks carry them, and the receiver's program waits. All ranks
/// call it.
/// @param progress  called before each repetition
/// @return on rank 0, measurements `program_message`: half of a round trip, for the
///         whole network, for an eighth and a 64th of it, and for 256 bytes
LinkMeasurements time_program_messages(const RankContext& run, Network& network,
                                       const std::function<void()>& progress);

/// Times of all-reduces and exchanges inside training steps, made by a progress thread while the program
/// waits, as in a real run. They differ from the times of many all-reduces in a row: one rank has slept until
/// the other arrived, and the caches hold what the passes left.
class InStepTimes {
 public:
  InStepTimes(Transport& transport, PollingPolicy& polling);

  /// Sums the values over all ranks by a ring, and keeps the time as pending.
  void all_reduce(std::span<float> values);

  /// Executes one round between packing and unpacking, and keeps the time of the round as pending: that of an
  /// all-reduce whose messages are as long.
  /// @param longest  elements of the longest message of any rank
  /// @return time of packing and unpacking [s]
  double exchange(const std::vector<Round>& round, float* memory, std::int64_t longest,
                  const std::function<void()>& pack, const std::function<void()>& unpack);

  /// Accepts or drops the times that were taken since the last call.
  void accept_pending(bool accepts);

  /// One measurement for each size of an all-reduce, on rank 0, of the times that were accepted
  /// since the last call; all ranks call it. An all-reduce counts from the arrival of the last rank, so its
  /// time is the shortest of all ranks.
  LinkMeasurements take_rows();

 private:
  double on_thread(const std::function<void()>& work);

  Transport& transport_;
  PollingPolicy& polling_;
  std::map<std::int64_t, std::vector<double>> seconds_;  ///< accepted times, by number of elements
  /// Elements and seconds, neither accepted nor dropped.
  std::vector<std::pair<std::int64_t, double>> pending_;
  CompletionQueue completions_;
  ProgressThread thread_;  // declared last: it uses the other members
};

/// CPU time that a message costs the core of the sending rank, and also the core of the receiving rank:
/// copies between tensors and message buffers, and the thread that carries messages. Interpolated in the rows
/// `message_host` of measured links; 0 if there are none.
Seconds message_host_time(const LinkMeasurements& links, Bytes size);

/// Adds CPU time to a trace: `forward` to every sample of the forward pass of the first layer from `layer`
/// upwards that has one, `backward` to the backward pass of the first layer from `layer` downwards that has
/// one.
void add_host_time(Trace& trace, int layer, Seconds forward, Seconds backward);

/// The trace of a whole network with the CPU time of pipeline messages: at each stage boundary, the layers on
/// both sides send or receive values in the forward pass and error signals in the backward pass.
Trace with_messages(Trace trace, const Model& model, const ModelPartition& partition,
                    const std::function<Seconds(Bytes)>& host_time);

}  // namespace stepcast
