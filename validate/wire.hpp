#pragma once

#include <memory>
#include <span>

#include "kernels/backend.hpp"

namespace stepcast {

/// Memory of one exchange, where a backend's kernels pack and unpack it, and as the host sees it.
struct WireMemory {
  float* there = nullptr;          ///< of the backend
  std::span<float> here = {};      ///< of the host; the same where the host can touch the backend's
  DeviceMemory* device = nullptr;  ///< that has it; null: the host
};

/// Memory for exchanges of which each ends before the next begins.
class Wire {
 public:
  explicit Wire(Backend& backend) : backend_(backend) {}

  /// That is at least so long; what was asked for before is gone.
  WireMemory of(std::size_t elements);

 private:
  Backend& backend_;
  std::size_t elements_ = 0;
  std::shared_ptr<float> there_, here_;
};

}  // namespace stepcast
