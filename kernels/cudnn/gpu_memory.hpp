#pragma once

#include "kernels/cudnn/device.hpp"
#include "kernels/device_memory.hpp"

namespace stepcast::cudnn {

/// A GPU's memory: marks are events on the stream of the work, host memory is pinned, and each direction has
/// a stream of its own, as a GPU has a copy engine for each.
class GpuMemory final : public DeviceMemory {
 public:
  explicit GpuMemory(std::shared_ptr<Device> device);

  Mark mark() override;
  void wait(const Mark& mark) override;
  std::shared_ptr<float> allocate(std::size_t elements) override;
  void copy(const float* from, float* to, std::size_t elements) override;
  double seconds(const Mark& begin, const Mark& end) override;
  std::shared_ptr<float> host_memory(std::size_t elements) override;
  void to_host(const Mark& after, const float* from, float* to, std::size_t elements) override;
  void to_device(const float* from, float* to, std::size_t elements) override;

 private:
  /// Each thread has a current GPU of its own; 0 unless told.
  void select() const;

  std::shared_ptr<Device> device_;
  Stream down_, up_;
};

/// @return  what the stream of the work, or another one, can wait for
cudaEvent_t event_of(const DeviceMemory::Mark& mark);

}  // namespace stepcast::cudnn
