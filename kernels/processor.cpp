#include "kernels/processor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace stepcast {

std::string processor_name() {
  std::string name = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    name = line.substr(colon + 2);
    break;
  }
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);  // not only those that this process may use
  return fmt::format("{}, {} {}", name, cores, cores == 1 ? "core" : "cores");
}

Bytes processor_memory() {
  return {static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

}  // namespace stepcast
