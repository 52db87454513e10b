#pragma once

#include <string>
#include <string_view>

#include "core/units.hpp"

namespace stepcast {

/// Three significant digits with an SI prefix: human(12345, "B/s") is "12.3 kB/s", human(12345, "") is "12.3
/// k". Values below 1 keep no prefix except for seconds. "-" for a number that is not finite.
std::string human(double value, std::string_view unit);

/// "1.23 us", "45.6 ms", "7.89 s", "12.3 min", "4.56 h", "7.89 d".
std::string human(Seconds time);

/// Binary prefixes, as memory is sold: "15.9 GiB".
std::string human(Bytes bytes);

/// Plain decimal text with `decimals` digits after the point; never "-0".
std::string fixed(double value, int decimals);

}  // namespace stepcast
