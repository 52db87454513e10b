#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernels/backend.hpp"

namespace stepcast {

/// Brings real data into tensors. On a device whose memory the host cannot touch it goes through memory that
/// copies run at full speed from, and into the tensor as work of the device: nothing waits for what the
/// device still computes.
class BatchWriter {
 public:
  explicit BatchWriter(Backend& backend) : backend_(backend) {}

  /// In row-major order. The tensor lives as long as this.
  void write(const std::vector<float>& values, Tensor& to);

 private:
  struct Stage {
    std::shared_ptr<float> host, device;
    DeviceMemory::Mark read;  ///< when the device has read what was staged last
  };

  Backend& backend_;
  std::map<const Tensor*, Stage> stages_;
};

}  // namespace stepcast
