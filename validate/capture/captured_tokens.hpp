#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "models/layer_times/trace.hpp"
#include "models/partition/tensor_shard.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/devices/token_exchanges.hpp"
#include "validate/capture/message_times.hpp"

namespace stepcast {

/// Makes the exchanges of tokens in captured steps, as the plan of a real run does, and times their copies.
class CapturedTokens {
 public:
  /// @param ways  ranks that share the layers; the part outlives this object
  CapturedTokens(const SharedPart& part, int ways, Transport& transport, InStepTimes& times);

  /// StepExchange::before_pass
  void before_pass(Network& network, std::size_t layer, Pass pass);
  /// Sums the gradients of layers whose tokens are divided, if there are any.
  void before_update(Network& network);
  /// Adds the median times of the copies to the trace, if there were any since the last call.
  void take_copies(Trace& trace);

 private:
  /// An exchange of a layer before or after one of its passes.
  struct Place {
    std::size_t layer;
    Pass pass;
    bool after;
    auto operator<=>(const Place&) const = default;
  };
  /// What it carries, and how.
  struct Carried {
    enum class How { gather, scatter, to_all } how{};
    Pass values{};  ///< forward: activations; backward_data: error signals
  };

  static std::optional<Carried> carried(TokenExchange::Form form, Pass pass, bool after);
  void exchange(Network& network, const Place& place);
  std::vector<Round> rounds_of_exchange(const TokenExchange& exchange, Carried::How how,
                                        std::int64_t elements) const;

  const SharedPart& part_;
  int ways_, rank_;
  InStepTimes& times_;
  std::optional<Place> due_;  ///< an exchange after the pass that runs
  std::optional<TokenSums> sums_;
  std::map<Place, std::vector<double>> copies_;  ///< of each step [s]
};

}  // namespace stepcast
