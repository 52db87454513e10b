#pragma once

#include <string>
#include <vector>

namespace stepcast {

struct Tick {
  double position = 0;
  std::string label = {};
};

/// Range and ticks of one axis, chosen so that labels neither overlap nor are missing.
struct Axis {
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks = {};
};

/// Logarithmic axis for a count: powers of two, as many as fit into `pixels`.
Axis power_of_two_axis(double least, double most, int pixels);

/// Logarithmic axis: 1, 2, 5 in every decade up to three decades, else powers of ten. Labels "200", "5k",
/// "10M".
Axis decimal_log_axis(double least, double most);

/// Linear axis in steps of 1, 2 or 5 times a power of ten, about `count` of them; the lower end is a tick.
Axis linear_axis(double least, double most, int count);

/// `set xrange [..]; set xtics (..)` for axis 'x' or 'y'.
std::string axis_commands(char name, const Axis& axis);

}  // namespace stepcast
