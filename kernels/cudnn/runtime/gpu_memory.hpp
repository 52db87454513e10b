#pragma once

#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/network/device_memory.hpp"

namespace stepcast::cudnn {

/// A GPU's memory. Marks are events on the stream of the work, host memory is page-locked, and each direction
/// of copies has its own stream, because a GPU has one copy engine per direction.
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
  /// Makes this GPU the current one of the calling thread; each thread starts with GPU 0.
  void select() const;

  std::shared_ptr<Device> device_;
  Stream down_, up_;
};

/// The event of a mark, for streams to wait for.
cudaEvent_t event_of(const DeviceMemory::Mark& mark);

}  // namespace stepcast::cudnn
