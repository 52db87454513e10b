#pragma once

#include <string>
#include <string_view>

#include "core/units.hpp"

namespace stepcast {

/// Text with three significant digits and an SI prefix: human(12345, "B/s") is "12.3 kB/s", human(12345, "")
/// is "12.3 k". Values below 1 get no prefix, except times. A number that is not finite is "-".
std::string human(double value, std::string_view unit);

/// Text such as "1.23 us", "45.6 ms", "7.89 s", "12.3 min", "4.56 h" or "7.89 d".
std::string human(Seconds time);

/// Text with a binary prefix, such as "15.9 GiB".
std::string human(Bytes bytes);

/// Plain decimal text with `decimals` digits after the point; never "-0".
std::string fixed(double value, int decimals);

}  // namespace stepcast
