#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// Standard output of a program that is found in PATH and runs without a shell.
struct ProgramOutput {
  bool ran = false;  ///< false if there is no such program or it failed
  std::string text;
};
ProgramOutput output_of(const std::vector<std::string>& arguments);

/// Clocks, temperature, power and throttle reasons of the GPU with this PCI bus id, in one line from
/// nvidia-smi, or a sentence that nvidia-smi failed. NVML is not used because no CUDA toolkit contains the
/// library.
std::string gpu_state(const std::string& pci_bus);

}  // namespace stepcast
