#pragma once

#include <cstddef>
#include <memory>

namespace stepcast {

/// Zeroed floats, aligned to 64 bytes; from 4 MiB on aligned to huge pages and asking for them, which keeps
/// the times of memory-bound layers from depending on how the kernel scattered small pages.
/// @throws std::bad_alloc
std::shared_ptr<float> allocate_floats(std::size_t elements);

}  // namespace stepcast
