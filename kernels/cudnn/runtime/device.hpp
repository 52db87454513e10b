#pragma once

#include <cublasLt.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/cudnn/cuda/element.hpp"
#include "kernels/cudnn/cuda/handles.hpp"
#include "kernels/network/backend.hpp"
#include "kernels/network/device_memory.hpp"

namespace stepcast::cudnn {

/// Zeroed memory of the device. @throws LimitError
std::shared_ptr<void> allocate_bytes(std::size_t bytes, cudaStream_t stream);

/// A stream that does not synchronize with the default stream. @throws GpuError
Stream make_stream();

/// Memory that library calls use one after another. Its size is fixed, so that a captured graph stays valid.
struct Workspace {
  std::shared_ptr<void> memory;
  std::size_t bytes = 0;
  std::size_t most_used = 0;

  /// Records that a call uses `needed` bytes.
  void use(std::size_t needed) { most_used = needed > most_used ? needed : most_used; }
  void* data() const { return memory.get(); }
};

class GraphPlan;

/// The fastest way to compute a pass of a convolution.
struct TimedChoice {
  int algorithm = 0;
  int math = 0;  ///< cudnnMathType_t with which the algorithm was timed, and with which it runs
  std::size_t workspace = 0;
  double seconds = 0;
  std::shared_ptr<const GraphPlan> plan = nullptr;  ///< computes the pass in place of the algorithm
};

/// One GPU: the stream that all work runs on, and the libraries' handles.
struct Device {
  explicit Device(const GpuOptions& options);

  Element element() const;
  cudnnDataType_t cudnn_type() const;
  cudaDataType_t cuda_type() const;
  /// The arithmetic of cuDNN for the precision; tf32 is arithmetic on fp32 data.
  cudnnMathType_t cudnn_math() const;
  cublasComputeType_t cublas_compute() const;

  /// Keeps the GPU busy until its clocks have risen, once: algorithms that are timed at the clock of an idle
  /// GPU are chosen by other times than those of training.
  void raise_clocks();
  /// Fills memory with numbers in (-1, 1). Products of zeros draw less power than products of data, so that
  /// the clock, and with it the order of algorithms, is another.
  void draw(void* memory, std::size_t bytes, Element element);
  /// Memory whose contents are of use only within one pass of one layer. Layers that want as many bytes share
  /// it, because the passes of a GPU run one after another on its stream.
  std::shared_ptr<void> memory_within_pass(std::size_t bytes);

  GpuOptions options;
  cudaDeviceProp properties{};
  Stream stream;
  Owned<cudnnHandle_t, cudnnDestroy> dnn;
  Owned<cublasHandle_t, cublasDestroy_v2> blas;
  Owned<cublasLtHandle_t, cublasLtDestroy> lt;
  Workspace workspace;
  std::map<std::string, TimedChoice> choices;  ///< choices for convolutions, by their geometry
  double search_seconds = 0;                   ///< time that their choice took
  bool clocks_are_high = false;
  /// Held while a graph is recorded. A thread other than the program's locks it to add to `stream`, because
  /// its work would become a part of the graph.
  std::recursive_mutex recording;

 private:
  std::map<std::size_t, std::weak_ptr<void>> within_pass_;  ///< by size [bytes]
};

/// @throws InputError if there is no such GPU
void require_device(int device);

/// Work on a device's stream that was recorded as one CUDA graph, so that its start costs the host one
/// launch.
class WorkGraph final : public RecordedWork {
 public:
  /// Records what `enqueue` adds to the stream. Nothing of it runs.
  /// @throws GpuError if a call cannot be recorded; the stream remains usable
  WorkGraph(std::shared_ptr<Device> device, const std::function<void()>& enqueue);

  void start() override;

 private:
  using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
  using Executable = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

  std::shared_ptr<Device> device_;
  Graph graph_;
  Executable executable_;
};

/// A GPU's memory. Events are recorded on the stream of the work, host memory is page-locked, and each
/// direction of copies has its own stream, because a GPU has one copy engine per direction.
class GpuMemory final : public DeviceMemory {
 public:
  explicit GpuMemory(std::shared_ptr<Device> device);

  Event record_event() override;
  void wait(const Event& event) override;
  std::shared_ptr<float> allocate(std::size_t elements) override;
  void copy(const float* from, float* to, std::size_t elements) override;
  double seconds(const Event& begin, const Event& end) override;
  std::shared_ptr<float> host_memory(std::size_t elements) override;
  void to_host(const Event& after, const float* from, float* to, std::size_t elements) override;
  void to_device(const float* from, float* to, std::size_t elements) override;

 private:
  /// Makes this GPU the current one of the calling thread; each thread starts with GPU 0.
  void select() const;

  std::shared_ptr<Device> device_;
  Stream down_, up_;
};

/// The CUDA event of an event of DeviceMemory, for streams to wait for.
cudaEvent_t cuda_event(const DeviceMemory::Event& event);

}  // namespace stepcast::cudnn
