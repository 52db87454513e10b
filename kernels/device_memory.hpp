#pragma once

#include <cstddef>
#include <memory>

namespace stepcast {

/// Memory of a device that the host cannot touch, and what orders copies after the device's work. An abstract
/// class because tests have no GPU. Any thread may call it; copies have streams of their own, beside the
/// work.
class DeviceMemory {
 public:
  /// Stands for all work that the device had been given when it was made.
  using Mark = std::shared_ptr<void>;

  virtual ~DeviceMemory() = default;

  virtual Mark mark() = 0;
  /// Returns when the work before the mark is done.
  virtual void wait(const Mark& mark) = 0;
  /// Between two marks whose work is done [s].
  virtual double seconds(const Mark& begin, const Mark& end) = 0;

  /// Memory of the device, zeroed by work that it is given.
  virtual std::shared_ptr<float> allocate(std::size_t elements) = 0;
  /// From one place of the device to another, as work that it is given: returns at once.
  virtual void copy(const float* from, float* to, std::size_t elements) = 0;

  /// Zeroed memory of the host that can be copied from and to at full speed.
  virtual std::shared_ptr<float> host_memory(std::size_t elements) = 0;
  /// Copies once the work before the mark is done; returns when the copy is.
  virtual void to_host(const Mark& after, const float* from, float* to, std::size_t elements) = 0;
  virtual void to_device(const float* from, float* to, std::size_t elements) = 0;
};

}  // namespace stepcast
