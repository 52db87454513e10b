#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernels/network/backend.hpp"
#include "runtime/memory/parameters.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Gathers the full arrays of tensor-parallel layers on rank 0. Collective over the first group; the other
/// ranks get an empty list. @param own  parameters of this rank's shard
Parameters gather_tensor_parallel_parameters(Transport& transport, const Model& model,
                                             const NetworkSharing& sharing, const Parameters& own);

/// Gathers the full arrays of all pipeline stages of the first replica on rank 0; only its ranks call it.
/// @param own  parameters of this rank's stage
Parameters gather_pipeline_parameters(Transport& transport, const Model& model, const Plan& plan,
                                      const Parameters& own);

/// The tensor-parallel shard of the whole network's parameters that the rank at `place` has.
Parameters shard_of_parameters(const Parameters& whole, const Model& model, const NetworkSharing& sharing,
                               int place);

/// Writes training data into tensors. On a device whose memory the host cannot access, the data go through a
/// pinned staging buffer and are copied into the tensor as work of the device, so the host does not wait for
/// running kernels.
class BatchWriter {
 public:
  explicit BatchWriter(Backend& backend) : backend_(backend) {}

  /// @param values  in row-major order
  /// @param to      outlives this object
  void write(const std::vector<float>& values, Tensor& to);

 private:
  struct StagingPair {
    std::shared_ptr<float> host, device;
    DeviceMemory::Mark read;  ///< when the device has read the data that were staged last
  };

  Backend& backend_;
  std::map<const Tensor*, StagingPair> staging_;
};

}  // namespace stepcast
