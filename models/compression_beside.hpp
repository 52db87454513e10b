#pragma once

#include <string>

#include "models/compression.hpp"

namespace stepcast {

/// CompressionTrace::device of a processor that compresses gradients of a device beside it, which it copies
/// there and back: "AMD EPYC, 16 cores (1 used) beside NVIDIA H100".
std::string beside_device(const std::string& processor, const std::string& device);

/// Whether a trace is one of those: its times hold for that device as they are.
bool is_beside_device(const CompressionTrace& trace);

}  // namespace stepcast
