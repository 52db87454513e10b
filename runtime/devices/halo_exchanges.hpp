#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/network/network.hpp"
#include "models/partition/spatial_partition.hpp"
#include "runtime/devices/rank_device.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Box of a map that one message of a halo exchange holds, and its position in the exchange's buffer.
struct HaloBox {
  bool sends = false;  ///< false: receives
  std::vector<Rows> box;
  std::int64_t begin = 0;  ///< [floats]
};

/// What halos hold: rows of the input or, before the backward pass, of the output's error signal. Returned
/// ones hold contributions to the gradient of rows of the input that the sender had read.
enum class HaloRows { input, errors, returned };

/// The messages that the device at `place` of a group sends and receives in each phase of a halo exchange of
/// the plan.
std::vector<std::vector<HaloBox>> halo_messages(const Model& model, const SpatialPartition& partition,
                                                const Collective& exchange, HaloRows rows, int place);

/// Copies what the messages of a phase send to the buffer of the exchange, which is memory of the backend.
/// Any thread may call it.
void pack_halo(Network& network, std::size_t layer, Pass pass, const std::vector<HaloBox>& phase,
               float* buffer);
/// Copies what the messages of a phase have received from the buffer to the kernel's margins.
void unpack_halo(Network& network, std::size_t layer, Pass pass, const std::vector<HaloBox>& phase,
                 const float* buffer);

/// Buffer of one exchange between ranks: the backend's kernels pack and unpack it, and the host sends and
/// receives it.
struct StagingBuffer {
  float* on_backend = nullptr;  ///< where kernels pack and unpack
  /// The host's memory for sending and receiving; equal to `on_backend` if the host can access that.
  std::span<float> on_host = {};
  DeviceMemory* device = nullptr;  ///< the backend's memory if the host cannot access it; else null
};

/// One staging buffer for exchanges of which each ends before the next begins.
class StagingBuffers {
 public:
  explicit StagingBuffers(Backend& backend) : backend_(backend) {}

  /// A buffer of at least `elements` floats. It replaces the buffer that was returned before.
  StagingBuffer of(std::size_t elements);

 private:
  Backend& backend_;
  std::size_t elements_ = 0;
  std::shared_ptr<float> on_backend_, on_host_;
};

/// Binds the halo exchanges of a plan to the kernels of a rank's part of a network.
class HaloExchanges {
 public:
  /// @param model, partition  of the whole network; @param place  of the rank in its group. All but the
  /// partition outlive this.
  HaloExchanges(Network& network, const Model& model, const SpatialPartition& partition, int place)
      : network_(network), model_(model), partition_(partition), place_(place), staging_(network.backend()) {}

  /// Works for an exchange that begins now. @param time_work  executes work of the device and counts its time
  CollectiveBinding bind(const Collective& collective,
                         const std::function<void(const std::function<void()>&)>& time_work);
  /// The buffer of the next exchange, and the binding of a collective to it.
  CollectiveBinding bind_staging(const Collective& collective, float*& on_backend);

 private:
  Network& network_;
  const Model& model_;
  SpatialPartition partition_;
  int place_;
  StagingBuffers staging_;  ///< one is enough, because programs wait for each exchange before the next
  std::map<const Collective*, std::vector<std::vector<HaloBox>>> messages_;
};

}  // namespace stepcast
