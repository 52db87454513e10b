#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

inline constexpr const char* kInBlock = "      ";  ///< indent of a layer in a block

/// Dropout behind a layer, which is then called NAME_dropout; nothing without a rate.
std::string dropout_line(std::string_view indent, std::string_view name, double rate);

/// A block that is repeated; nothing for 0 times.
std::string repeated_lines(std::int64_t times, std::string_view name, const std::string& layers);

}  // namespace stepcast
