#pragma once

#include <map>
#include <span>

#include "kernels/network/network.hpp"

namespace stepcast {

/// Host copy of the parameters and gradients of a network whose device memory the host cannot access.
///
/// Collectives and messages `fetch` the parts that they read and `store` the parts that they wrote.
/// Arithmetic on the host maps spans (`map_to_host`), which hold the device's values until `unmap` stores
/// them.
class HostMirror {
 public:
  /// @param network  its backend has a device memory; it outlives the mirror
  explicit HostMirror(Network& network);

  std::span<float> parameters() const { return {values_.host.get(), elements_}; }
  std::span<float> gradients() const { return {gradients_.host.get(), elements_}; }

  /// The device address of a part of the mirror; null for memory that is not the mirror's.
  float* on_device(std::span<const float> part);

  /// Copies a part from the device when the device's work before the mark is done.
  void fetch(std::span<float> part, const DeviceMemory::Mark& after);
  /// Copies a part to the device.
  void store(std::span<const float> part);

  /// Copies a part from the device, except for elements that are mapped already. Elements outside the part
  /// are not touched: they may be in transfer, and either the host or the device may have the newer value.
  void map_to_host(std::span<float> part);
  /// Stores all mapped parts. Mapped spans are stale from now on.
  void unmap();
  /// The device address of these values: the mirror's own for a part of it, else that of a copy.
  const float* uploaded(std::span<const float> values);

  DeviceMemory& device() const { return device_; }
  /// Returns when the device has finished all submitted work.
  void finish() const { network_.backend().finish(); }

 private:
  struct MappedArray {
    std::shared_ptr<float> host;
    float* device = nullptr;
    /// Mapped parts: begin to end; they neither overlap nor touch.
    std::map<std::size_t, std::size_t> ranges = {};
  };

  /// The array of the mirror that this memory belongs to; null: none.
  MappedArray* mapped_array(std::span<const float> part);
  void copy_to_host(const MappedArray& mapped, std::size_t begin, std::size_t end);

  Network& network_;
  DeviceMemory& device_;
  std::size_t elements_;
  MappedArray values_, gradients_;
  std::shared_ptr<float> scratch_;  ///< device memory of `uploaded`; allocated when it is first needed
};

}  // namespace stepcast
