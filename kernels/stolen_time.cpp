#include "kernels/stolen_time.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "kernels/stopwatch.hpp"

namespace stepcast {

double stolen_seconds(const std::string& text, double ticks_a_second) {
  std::istringstream line(text.substr(0, text.find('\n')));
  std::string name;
  if (!(line >> name) || name != "cpu") return 0;
  double ticks = 0;
  for (int column = 0; column < 8; ++column) {  // user nice system idle iowait irq softirq steal
    if (!(line >> ticks)) return 0;
  }
  return ticks / ticks_a_second;
}

double stolen_seconds() {
  std::ifstream file("/proc/stat");
  std::string first;
  if (!std::getline(file, first)) return 0;
  return stolen_seconds(first, static_cast<double>(sysconf(_SC_CLK_TCK)));
}

StolenShare::StolenShare() : wall_(now().wall), stolen_(stolen_seconds()) {}

double StolenShare::until_now() const {
  const double seconds = now().wall - wall_;
  const auto cores = static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  return seconds > 0 ? (stolen_seconds() - stolen_) / (seconds * cores) : 0;
}

}  // namespace stepcast
