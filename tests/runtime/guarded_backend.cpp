#include "guarded_backend.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "kernels/network/device_memory.hpp"
#include "kernels/onednn/backend.hpp"

namespace stepcast::test {

/// Memory that is mapped twice: at the device's addresses, which are protected unless a kernel runs, and at
/// addresses for copies.
class Arena {
 public:
  explicit Arena(std::size_t floats) : bytes_((floats * sizeof(float) / 4096 + 1) * 4096) {
    const int file = memfd_create("guarded", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, bytes_) != 0) throw std::runtime_error("memfd");
    device_ = mapped(file, PROT_NONE);
    copies_ = mapped(file, PROT_READ | PROT_WRITE);
    close(file);
  }
  Arena(const Arena&) = delete;
  ~Arena() {
    munmap(device_, bytes_);
    munmap(copies_, bytes_);
  }

  void open(bool wide) { mprotect(device_, bytes_, wide ? PROT_READ | PROT_WRITE : PROT_NONE); }
  float* device() const { return reinterpret_cast<float*>(device_); }
  /// The address for copies of a device address; null if it is not in this arena.
  float* for_copies(const float* there) const {
    const auto* place = reinterpret_cast<const char*>(there);
    if (place < device_ || place >= device_ + bytes_) return nullptr;
    return reinterpret_cast<float*>(copies_ + (place - device_));
  }

 private:
  char* mapped(int file, int protection) const {
    return static_cast<char*>(mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0));
  }

  std::size_t bytes_;
  char *device_ = nullptr, *copies_ = nullptr;
};

class Arenas {
 public:
  std::shared_ptr<float> make(std::size_t floats) {
    const auto arena = std::make_shared<Arena>(floats);
    const std::lock_guard lock(mutex_);
    all_.push_back(arena);
    return {arena, arena->device()};
  }
  float* for_copies(const float* there) {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : all_) {
      const auto arena = weak.lock();
      if (float* found = arena ? arena->for_copies(there) : nullptr) return found;
    }
    throw std::logic_error("a copy from or to memory that is not the device's");
  }
  /// Kernels of several threads may run at once; the last that ends closes the memory.
  void open(bool wide) {
    const std::lock_guard lock(mutex_);
    running_ += wide ? 1 : -1;
    if (running_ != (wide ? 1 : 0)) return;
    for (const auto& weak : all_) {
      if (const auto arena = weak.lock()) arena->open(wide);
    }
  }

 private:
  std::mutex mutex_;
  int running_ = 0;
  std::vector<std::weak_ptr<Arena>> all_;
};

/// Opens the device memory for its lifetime, in which a kernel runs.
class Running {
 public:
  explicit Running(Arenas& arenas) : arenas_(arenas) { arenas_.open(true); }
  Running(const Running&) = delete;
  ~Running() { arenas_.open(false); }

 private:
  Arenas& arenas_;
};

struct Guard {
  Arenas arenas;

  Running running() { return Running(arenas); }
};

namespace {

class GuardedKernel final : public LayerKernel {
 public:
  GuardedKernel(std::shared_ptr<Guard> guard, std::unique_ptr<LayerKernel> kernel)
      : guard_(std::move(guard)), kernel_(std::move(kernel)) {}

  Tensor& output() override { return kernel_->output(); }
  std::vector<std::size_t> stored_elements() const override { return kernel_->stored_elements(); }
  void bind(std::size_t parameter, float* value, float* gradient) override {
    const Running running = guard_->running();
    kernel_->bind(parameter, value, gradient);
  }
  std::vector<float> read_parameter(std::size_t parameter) const override {
    const Running running = guard_->running();
    return kernel_->read_parameter(parameter);
  }
  void write_parameter(std::size_t parameter, const std::vector<float>& values) override {
    const Running running = guard_->running();
    kernel_->write_parameter(parameter, values);
  }
  std::vector<float> read_gradient(std::size_t parameter) const override {
    const Running running = guard_->running();
    return kernel_->read_gradient(parameter);
  }
  void connect_backward(const std::vector<Tensor*>& output_gradients,
                        const std::vector<bool>& wanted) override {
    const Running running = guard_->running();
    kernel_->connect_backward(output_gradients, wanted);
  }
  Tensor* input_gradient(std::size_t input) override { return kernel_->input_gradient(input); }
  bool has(Pass pass) const override { return kernel_->has(pass); }
  void run(Pass pass) override {
    run_interior(pass);
    run_border(pass);
  }
  void run_interior(Pass pass) override {
    const Running running = guard_->running();
    kernel_->run_interior(pass);
    const auto there = summed_.find(pass);
    const std::span<float> inner = kernel_->partial_sums(pass);
    if (there != summed_.end()) std::copy(inner.begin(), inner.end(), there->second.get());
  }
  void run_border(Pass pass) override {
    const Running running = guard_->running();
    kernel_->run_border(pass);
  }
  bool has_halo(Pass pass) const override { return kernel_->has_halo(pass); }
  void pack_halo(Pass pass, const std::vector<Rows>& box, float* message) override {
    const Running running = guard_->running();
    kernel_->pack_halo(pass, box, message);
  }
  void unpack_halo(Pass pass, const std::vector<Rows>& box, const float* message) override {
    const Running running = guard_->running();
    kernel_->unpack_halo(pass, box, message);
  }
  void prepare_halo(Pass pass) override {
    const Running running = guard_->running();
    kernel_->prepare_halo(pass);
  }
  /// Device memory, as for a GPU's kernels.
  std::span<float> partial_sums(Pass pass) override {
    const std::span<float> inner = kernel_->partial_sums(pass);
    if (inner.empty()) return {};
    auto& there = summed_[pass];
    if (there == nullptr) {  // allocated after the pass that first needs it
      there = guard_->arenas.make(inner.size());
      const Running running = guard_->running();
      std::copy(inner.begin(), inner.end(), there.get());
    }
    return {there.get(), inner.size()};
  }
  void defer_sums() override { kernel_->defer_sums(); }
  void finish(Pass pass) override {
    const Running running = guard_->running();
    const std::span<float> inner = kernel_->partial_sums(pass);
    if (!inner.empty()) std::copy_n(summed_.at(pass).get(), inner.size(), inner.data());
    kernel_->finish(pass);
  }
  Tensor* targets() override { return kernel_->targets(); }
  double loss() const override { return kernel_->loss(); }

 private:
  std::shared_ptr<Guard> guard_;
  std::unique_ptr<LayerKernel> kernel_;
  std::map<Pass, std::shared_ptr<float>> summed_;
};

class GuardedMemory final : public DeviceMemory {
 public:
  explicit GuardedMemory(std::shared_ptr<Guard> guard) : guard_(std::move(guard)) {}

  Event record_event() override { return std::make_shared<Clock::time_point>(Clock::now()); }
  void wait(const Event& event) override {
    if (!event) throw std::logic_error("wait needs an event");
  }
  double seconds(const Event& begin, const Event& end) override {
    const auto at = [](const Event& event) { return *static_cast<const Clock::time_point*>(event.get()); };
    return std::chrono::duration<double>(at(end) - at(begin)).count();
  }
  std::shared_ptr<float> allocate(std::size_t elements) override { return guard_->arenas.make(elements); }
  void copy(const float* from, float* to, std::size_t elements) override {
    if (elements == 0) return;
    std::memmove(guard_->arenas.for_copies(to), guard_->arenas.for_copies(from), elements * sizeof(float));
  }
  std::shared_ptr<float> host_memory(std::size_t elements) override { return allocate_floats(elements); }
  void to_host(const Event& after, const float* from, float* to, std::size_t elements) override {
    if (!after) throw std::logic_error("to_host needs an event");
    if (elements > 0) std::memcpy(to, guard_->arenas.for_copies(from), elements * sizeof(float));
  }
  void to_device(const float* from, float* to, std::size_t elements) override {
    if (elements > 0) std::memcpy(guard_->arenas.for_copies(to), from, elements * sizeof(float));
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<Guard> guard_;
};

class GuardedBackend final : public Backend {
 public:
  std::string library() const override { return inner_->library(); }
  std::string device() const override { return inner_->device(); }
  std::unique_ptr<Tensor> make_tensor(const Shape& shape) override { return inner_->make_tensor(shape); }
  std::unique_ptr<LayerKernel> make_kernel(const LayerSite& site) override {
    return std::make_unique<GuardedKernel>(guard_, inner_->make_kernel(site));
  }
  std::shared_ptr<float> allocate(std::size_t elements) override { return guard_->arenas.make(elements); }
  void update(const Optimizer& optimizer, const UpdateArrays& arrays) override {
    const Running running = guard_->running();
    inner_->update(optimizer, arrays);
  }
  void clear(float* memory, std::size_t elements) override {
    const Running running = guard_->running();
    inner_->clear(memory, elements);
  }
  void add(const float* terms, float* sum, std::size_t elements) override {
    const Running running = guard_->running();
    inner_->add(terms, sum, elements);
  }
  void copy_out(const Tensor& from, float* to) override {
    const Running running = guard_->running();
    from.copy_to(to);
  }
  void copy_in(const float* from, Tensor& to) override {
    const Running running = guard_->running();
    to.copy_from(from);
  }
  void move(const BoxMove& box, const float* from, float* to) override {
    const Running running = guard_->running();
    inner_->move(box, from, to);
  }
  void begin_thread() override { inner_->begin_thread(); }
  void finish() override { inner_->finish(); }
  DeviceMemory* device_memory() override { return &memory_; }

 private:
  std::shared_ptr<Guard> guard_ = std::make_shared<Guard>();
  std::unique_ptr<Backend> inner_ = make_onednn_backend();
  GuardedMemory memory_{guard_};
};

}  // namespace

std::unique_ptr<Backend> make_guarded_backend() {
  return std::make_unique<GuardedBackend>();
}

}  // namespace stepcast::test
