#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepcast {

/// Plain decimal number: `-12`, `3.5`, `1e-6`. No leading zeros or plus, no hexadecimal, no inf or nan.
std::optional<double> parse_number(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);

enum class Dimension { time, bytes, flops, bytes_per_second, flops_per_second };

/// "25 GB/s" with a unit of `dimension`, in SI base units; nothing if the text is anything else.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

/// An example for error messages: "25 GB/s".
std::string_view example(Dimension dimension);

/// What no network, cluster or training reaches; beyond, sums and counts of bytes lose their meaning.
struct Reach {
  double low, high;  ///< in SI units
  std::string_view text;
};
Reach reach(Dimension dimension);

}  // namespace stepcast
