#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace stepcast {

/// Memory of a device that the host cannot access, and events that order copies after the device's work. It
/// is abstract because tests have no GPU. Thread-safe. Copies have streams of their own, so that they overlap
/// with the device's work.
class DeviceMemory {
 public:
  /// A point in the device's queue of work, such as a CUDA event. It is complete when all work enqueued
  /// before it is done.
  using Event = std::shared_ptr<void>;

  virtual ~DeviceMemory() = default;

  virtual Event record_event() = 0;
  /// Returns when the work before the event is done.
  virtual void wait(const Event& event) = 0;
  /// Time between two complete events [s].
  virtual double seconds(const Event& begin, const Event& end) = 0;

  /// Memory of the device; enqueues the work that zeroes it.
  virtual std::shared_ptr<float> allocate(std::size_t elements) = 0;
  /// Enqueues a copy within the device's memory and returns at once.
  virtual void copy(const float* from, float* to, std::size_t elements) = 0;

  /// Zeroed page-locked memory of the host, which is copied at full speed.
  virtual std::shared_ptr<float> host_memory(std::size_t elements) = 0;
  /// Copies to the host after the work before the event; returns when the copy is done.
  virtual void to_host(const Event& after, const float* from, float* to, std::size_t elements) = 0;
  /// Copies to the device; returns when the copy is done.
  virtual void to_device(const float* from, float* to, std::size_t elements) = 0;
};

/// Zeroed floats, aligned to 64 bytes. From 4 MiB on they are aligned to huge pages, which are requested, so
/// that the times of memory-bound layers do not depend on how the operating system scattered small pages.
/// @throws std::bad_alloc
std::shared_ptr<float> allocate_floats(std::size_t elements);

/// A copy of a box of elements with at most five dimensions and separate strides [elements] in source and
/// target: permutations, crops, parts of maps.
struct BoxMove {
  std::vector<std::int64_t> size, from_stride, to_stride;
  std::int64_t from_offset = 0, to_offset = 0;
};

/// Strides of a row-major box.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& size);

/// From a packed box to its place in a row-major whole. @param first  index of the box's first element
BoxMove into_whole(const std::vector<std::int64_t>& whole, const std::vector<std::int64_t>& first,
                   const std::vector<std::int64_t>& size);

/// The same elements from the target to the source.
BoxMove reversed(BoxMove box);

/// Copies a box of elements in the host's memory.
void move_on_host(const BoxMove& box, const float* from, float* to);

}  // namespace stepcast
