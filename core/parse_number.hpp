#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepcast {

/// Parses a plain decimal number such as `-12`, `3.5` or `1e-6`. Leading zeros, a plus sign, hexadecimal
/// numbers, inf and nan are refused: the result is empty.
std::optional<double> parse_number(std::string_view text);
/// Parses a plain decimal integer by the same rules.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// Physical dimension of a quantity with a unit.
enum class Dimension { time, bytes, flops, bytes_per_second, flops_per_second };

/// Parses a number and a unit of `dimension`, such as "25 GB/s", into SI base units. Empty for any other
/// text.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

/// An example of a quantity for error messages, such as "25 GB/s".
std::string_view example(Dimension dimension);

/// Range of values that is accepted. No network, cluster or training comes near its ends; beyond them, sums
/// of bytes and of times lose their meaning in double precision.
struct ValueRange {
  double low, high;  ///< in SI units
  std::string_view text;
};
ValueRange valid_range(Dimension dimension);

}  // namespace stepcast
