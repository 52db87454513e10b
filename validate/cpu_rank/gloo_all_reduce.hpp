#pragma once

#include <filesystem>

#include "runtime/transport/transport.hpp"

namespace stepcast {

/// gloo's ring all-reduce over sockets of the loopback, for ranks of one machine: what PyTorch's DDP uses on
/// CPUs. All ranks call it, in the same order, always over all ranks. The ranks connect when they first sum.
/// @param folder  where the ranks exchange their addresses
/// @return without a function where stepcast was built without gloo
LibraryAllReduce gloo_all_reduce(int rank, int ranks, const std::filesystem::path& folder);

}  // namespace stepcast
