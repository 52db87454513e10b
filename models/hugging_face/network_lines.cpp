#include "models/hugging_face/network_lines.hpp"

#include <fmt/format.h>

namespace stepcast {

std::string dropout_line(std::string_view indent, std::string_view name, double rate) {
  if (!(rate > 0)) return "";
  return fmt::format("{}- {{name: {}_dropout, kind: dropout, rate: {:.6g}}}\n", indent, name, rate);
}

std::string repeated_lines(std::int64_t times, std::string_view name, const std::string& layers) {
  return times == 0 ? "" : fmt::format("  - repeat: {}\n    name: {}\n    layers:\n{}", times, name, layers);
}

}  // namespace stepcast
