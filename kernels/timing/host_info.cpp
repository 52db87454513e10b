#include "kernels/timing/host_info.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "kernels/timing/step_timer.hpp"

#ifdef __SSE2__
#endif

// GNU's OpenMP runtime is the one that oneDNN uses, whatever compiler builds this file; its header comes with
// g++ only.
extern "C" void omp_set_num_threads(int);

namespace stepcast {
namespace {

/// Flushes denormal numbers to zero in this thread and those that it starts. Processors take up to a hundred
/// times as long for each of them; a step whose gradients vanish took a tenth longer.
void flush_denormal_numbers() {
#ifdef __SSE2__
  constexpr unsigned kFlushResults = 0x8000, kZeroOperands = 0x0040;  // bits of the register MXCSR
  _mm_setcsr(_mm_getcsr() | kFlushResults | kZeroOperands);
#endif
}

}  // namespace

void set_kernel_threads(int threads) {
  flush_denormal_numbers();
  omp_set_num_threads(threads);
}

std::string processor_name() {
  std::string name = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    name = line.substr(colon + 2);
    break;
  }
  const long cores =
      sysconf(_SC_NPROCESSORS_ONLN);  // all cores of the machine, not only those of this process
  return fmt::format("{}, {} {}", name, cores, cores == 1 ? "core" : "cores");
}

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
  return stolen_seconds(first, sysconf(_SC_CLK_TCK));
}

StolenShare::StolenShare() : wall_(now().wall), stolen_(stolen_seconds()) {}

double StolenShare::seconds() const {
  return stolen_seconds() - stolen_;
}

double StolenShare::until_now(double expected) const {
  const double wall = now().wall - wall_;
  const double cores = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  return wall > 0 ? std::max(0.0, seconds() - expected) / (wall * cores) : 0;
}

}  // namespace stepcast
