#pragma once

#include <string>
#include <vector>

namespace stepcast {

struct Tick {
  double position = 0;
  std::string label = {};
};

/// The range and the ticks of one axis.
struct Axis {
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks = {};
};

/// A logarithmic axis for a count, with ticks at powers of two and as many labels as fit into `pixels`.
Axis power_of_two_axis(double least, double most, int pixels);

/// A logarithmic axis with ticks at 1, 2 and 5 in every decade for up to three decades, otherwise at powers
/// of ten. Labels are such as "200", "5k", "10M".
Axis decimal_log_axis(double least, double most);

/// A linear axis with about `count` steps of 1, 2 or 5 times a power of ten; its lower end is a tick.
Axis linear_axis(double least, double most, int count);

/// The gnuplot commands `set xrange [..]` and `set xtics (..)` for axis 'x' or 'y'.
std::string axis_commands(char name, const Axis& axis);

}  // namespace stepcast
