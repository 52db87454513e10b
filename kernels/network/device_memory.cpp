#include "kernels/network/device_memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace stepcast {

std::shared_ptr<float> allocate_floats(std::size_t elements) {
  constexpr std::size_t kHugePage = 2u << 20;
  const std::size_t bytes = (elements == 0 ? 1 : elements) * sizeof(float);
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: refusal does no harm
  std::memset(memory, 0, rounded);
  return {static_cast<float*>(memory), std::free};
}

}  // namespace stepcast
