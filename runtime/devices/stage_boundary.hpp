#pragma once

#include <memory>
#include <vector>

#include "kernels/network/network.hpp"

namespace stepcast {

/// The tensors that a message between two pipeline stages holds, one after the other.
struct StageBoundary {
  /// The output of layer `source` (-1: the model's input), or the error signal of that output.
  struct Entry {
    int source = 0;
    std::size_t begin = 0, size = 0;  ///< position in the message [floats]
  };
  std::vector<Entry> entries;
  std::size_t size = 0;  ///< of the message [floats]

  const Entry& entry_of(int source) const;
};

/// The boundary before `layer`, for a batch of `batch` samples.
StageBoundary boundary_before(const Model& model, int layer, std::int64_t batch);

/// Packs and unpacks the boundary messages of a chunk on a device whose memory the host cannot access. All
/// copies are enqueued on the device. What a micro-batch received is kept, because some tensors only pass
/// through the chunk.
class DeviceStageBoundary {
 public:
  /// @param first   first layer of the chunk
  /// @param before  boundary before the chunk
  /// @param after   boundary after the chunk
  DeviceStageBoundary(int first, StageBoundary before, StageBoundary after, std::size_t micro_batches)
      : first_(first), before_(std::move(before)), after_(std::move(after)), received_(micro_batches) {}

  /// Floats of a message of values to the next chunk, and of one of error signals to the previous chunk.
  std::size_t values_size() const { return after_.size; }
  std::size_t errors_size() const { return before_.size; }

  /// @param network  of this micro-batch
  void pack_values(Network& network, std::size_t micro_batch, float* to);
  void pack_errors(Network& network, std::size_t micro_batch, float* to);
  void unpack_values(Network& network, std::size_t micro_batch, const float* from);
  void unpack_errors(Network& network, std::size_t micro_batch, const float* from);

 private:
  struct Received {
    std::shared_ptr<float> values, errors;
  };

  /// True for the output of a layer of this chunk; other tensors only pass through it.
  bool is_own(const StageBoundary::Entry& entry) const { return entry.source >= first_; }
  /// Copies a received message into `memory`, which is allocated if it is null. Returns the copy.
  static float* store_received(Network& network, std::shared_ptr<float>& memory, const float* from,
                               std::size_t size);

  int first_;
  StageBoundary before_, after_;
  std::vector<Received> received_;  ///< per micro-batch
  std::shared_ptr<float> scratch_;  ///< for one error signal
};

}  // namespace stepcast
