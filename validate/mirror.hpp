#pragma once

#include <map>
#include <span>

#include "kernels/network.hpp"

namespace stepcast {

/// Parameters and gradients of a network on a device whose memory the host cannot touch, as the host sees
/// them: arrays of its own, and copies to and fro.
///
/// Collectives and messages `fetch` what they read and `store` what they wrote. Arithmetic is lent spans,
/// which hold the device's values until `take_back` stores them.
class Mirror {
 public:
  /// @param network  whose backend has a device memory; it outlives the mirror
  explicit Mirror(Network& network);

  std::span<float> parameters() const { return {values_.host.get(), elements_}; }
  std::span<float> gradients() const { return {gradients_.host.get(), elements_}; }

  /// Whether this is memory of the mirror, and where it lies on the device; null for other memory.
  float* on_device(std::span<const float> part);

  /// What the device's memory holds when the work before the mark is done.
  void fetch(std::span<float> part, const DeviceMemory::Mark& after);
  void store(std::span<const float> part);

  /// Holds what the device has there now, but for elements that are lent already. No others are touched: what
  /// lies between two parts may be on its way, and the host or the device has the newer of it.
  void lend(std::span<float> part);
  /// Stores what was lent. Spans that were lent are stale from now on.
  void take_back();
  /// The same numbers in the device's memory: of the mirror where they lie, others copied.
  const float* uploaded(std::span<const float> values);

  DeviceMemory& device() const { return device_; }
  /// Returns when the device has done all that it was given.
  void finish() const { network_.backend().finish(); }

 private:
  struct Twin {
    std::shared_ptr<float> host;
    float* device = nullptr;
    std::map<std::size_t, std::size_t> lent = {};  ///< begin and end of parts that do not touch
  };

  /// Of the mirror, that has this memory; null: none.
  Twin* twin_of(std::span<const float> part);
  void copy_down(const Twin& twin, std::size_t begin, std::size_t end);

  Network& network_;
  DeviceMemory& device_;
  std::size_t elements_;
  Twin values_, gradients_;
  std::shared_ptr<float> scratch_;  ///< on the device, for `uploaded`; made when it is first needed
};

}  // namespace stepcast
