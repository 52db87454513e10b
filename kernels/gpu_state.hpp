#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// Standard output of a program found in PATH, run without a shell, and whether it ended well.
struct ProgramOutput {
  bool ran = false;  ///< false: there is no such program, or it failed
  std::string text;
};
ProgramOutput output_of(const std::vector<std::string>& arguments);

/// Clocks, temperature, power and what throttles the GPU of that PCI bus, as nvidia-smi says it in one line;
/// in words that it is not there, otherwise. NVML itself is in no toolkit.
std::string gpu_state(const std::string& pci_bus);

}  // namespace stepcast
