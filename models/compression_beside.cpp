#include "models/compression_beside.hpp"

namespace stepcast {
namespace {

constexpr const char* kBeside = " beside ";

}  // namespace

std::string beside_device(const std::string& processor, const std::string& device) {
  return processor + kBeside + device;
}

bool is_beside_device(const CompressionTrace& trace) {
  return trace.device.find(kBeside) != std::string::npos;
}

}  // namespace stepcast
