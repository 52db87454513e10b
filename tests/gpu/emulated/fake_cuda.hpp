#pragma once

#include <cstddef>
#include <set>

namespace stepcast::fake {

/// True if this thread captures a graph. Meanwhile calls that allocate, free or wait fail, as CUDA's do.
bool& capturing();

/// Number of blocks of memory with this many bytes that are allocated now.
int allocations_of(std::size_t bytes);

/// The GPUs on which this process has used a call that makes a context, which takes some hundred megabytes.
std::set<int> contexts();
void forget_contexts();

}  // namespace stepcast::fake
