#include "guarded_backend.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "kernels/memory.hpp"

namespace stepcast::test {
namespace {

/// Memory that is mapped twice: where "the device" has it, closed unless a kernel runs, and where copies go.
class Arena {
 public:
  explicit Arena(std::size_t floats) : bytes_((floats * sizeof(float) / 4096 + 1) * 4096) {
    const int file = memfd_create("guarded", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes_)) != 0) throw std::runtime_error("memfd");
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
  /// Where copies find what the device has there; null if that is not of this arena.
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
  void open(bool wide) {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : all_) {
      if (const auto arena = weak.lock()) arena->open(wide);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Arena>> all_;
};

/// While something runs on the device.
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
    const Running running = guard_->running();
    kernel_->run(pass);
  }
  Tensor* targets() override { return kernel_->targets(); }
  double loss() const override { return kernel_->loss(); }

 private:
  std::shared_ptr<Guard> guard_;
  std::unique_ptr<LayerKernel> kernel_;
};

class GuardedMemory final : public DeviceMemory {
 public:
  explicit GuardedMemory(std::shared_ptr<Guard> guard) : guard_(std::move(guard)) {}

  Mark mark() override { return std::make_shared<Clock::time_point>(Clock::now()); }
  double seconds(const Mark& begin, const Mark& end) override {
    const auto at = [](const Mark& mark) { return *static_cast<const Clock::time_point*>(mark.get()); };
    return std::chrono::duration<double>(at(end) - at(begin)).count();
  }
  std::shared_ptr<float> allocate(std::size_t elements) override { return guard_->arenas.make(elements); }
  void copy(const float* from, float* to, std::size_t elements) override {
    if (elements == 0) return;
    std::memmove(guard_->arenas.for_copies(to), guard_->arenas.for_copies(from), elements * sizeof(float));
  }
  std::shared_ptr<float> host_memory(std::size_t elements) override { return allocate_floats(elements); }
  void to_host(const Mark& after, const float* from, float* to, std::size_t elements) override {
    if (!after) throw std::logic_error("a copy after no mark");
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
