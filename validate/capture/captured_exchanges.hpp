#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/layer_times/trace.hpp"
#include "models/partition/tensor_shard.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/devices/gathered_maps.hpp"
#include "runtime/devices/halo_exchanges.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/devices/spatial_device.hpp"
#include "validate/capture/captured_tokens.hpp"
#include "validate/capture/message_times.hpp"

namespace stepcast {

/// Makes the exchanges of a shard in captured steps, as the plan of a real run does, so that the caches hold
/// the same data: halos, the resharding to whole samples and back, maps that ranks gather, and tokens.
class CapturedExchanges {
 public:
  /// @param model  the whole model; it and the shard outlive this object
  CapturedExchanges(const Model& model, const ModelPartition& partition, const RankShard& shard,
                    Transport& transport, InStepTimes& times);

  /// StepExchange::before_pass
  void before_pass(Network& network, std::size_t layer, Pass pass);
  /// The exchanges of tokens; null: ranks have all tokens.
  CapturedTokens* tokens() { return tokens_ ? &*tokens_ : nullptr; }

  /// Adds the median times of the copies of a resharding and of gathered maps to the trace, if there were any
  /// since the last call.
  void take_copies(Trace& trace);

 private:
  /// The messages along one dimension.
  struct DimensionExchange {
    std::vector<HaloBox> boxes;
    std::vector<Round> rounds;
    std::int64_t longest = 0;  ///< elements of the longest message
  };
  struct Resharding {
    SpatialToBatchResharding copies;
    std::shared_ptr<float> memory;
    std::vector<std::vector<Round>> phases;
    std::int64_t longest;  ///< elements of the longest message
  };
  struct Gathering {
    GatheredMaps maps;
    std::vector<Round> gather, scatter;
  };
  /// Of each step [s].
  struct CopyTimes {
    std::vector<double> forward, backward;
  };

  std::vector<DimensionExchange> exchanges_of(std::size_t layer, Pass pass);
  void exchange_halo(Network& network, std::size_t layer, Pass pass);
  void reshard(Network& network, bool forward);
  void gather(Network& network, std::size_t layer);
  void scatter_errors(std::size_t layer);
  void exchange(const Gathering& one, const std::vector<Round>& rounds);
  std::vector<Round> rounds_of_phase(const Schedule& schedule, const Phase& phase,
                                     std::int64_t elements) const;

  const Model& model_;
  const ModelPartition partition_;
  const SharedPart* shared_;  ///< null: a part of the samples, not of the layers
  int place_, ways_, first_;  ///< in the group of ranks that share samples; first rank of the group
  InStepTimes& times_;
  std::vector<std::vector<LayerHalo>> halos_;  ///< of each device of the group
  std::map<std::pair<std::size_t, Pass>, std::vector<DimensionExchange>> exchanges_;
  std::vector<float> buffer_;
  std::unique_ptr<Resharding> resharding_;
  std::map<std::size_t, Gathering> gatherings_;  ///< by the first layer that reads the maps
  /// Layers whose input was exchanged in this step, and its error signals not yet.
  std::vector<std::size_t> errors_due_;
  std::optional<CapturedTokens> tokens_;
  std::map<std::size_t, CopyTimes> copies_;  ///< by the first layer that reads what was copied
};

}  // namespace stepcast
