#pragma once

#include <cstddef>

namespace stepcast::pretended {

/// True if this thread captures a graph. Meanwhile calls that allocate, free or wait fail, as CUDA's do.
bool& capturing();

/// Number of blocks of memory with this many bytes that are allocated now.
int allocations_of(std::size_t bytes);

}  // namespace stepcast::pretended
