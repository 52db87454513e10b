#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/keys.hpp"
#include "core/typed_numbers.hpp"
#include "core/yaml.hpp"
#include "models/cost/kernel_choice.hpp"

namespace stepcast {

/// A published training rate of one device. Only derived traces use it.
struct DeviceRate {
  enum class Use { calibrate, check };  ///< check: compared with, not fitted

  std::string model;
  std::int64_t batch = 1;
  double samples_per_second = 0;
  Use use = Use::calibrate;
  std::string source;
};

/// Peak and shares of one precision.
struct PrecisionKernels {
  FlopsPerSecond peak;
  KernelShares kernels;
};

/// One GPU or one CPU socket, with the data that the roofline rule and the memory check need
/// (`models/devices/NAME.yaml`).
struct Device {
  std::string name;
  FlopsPerSecond peak;  ///< fp32 (see with_kernels); a multiply-add counts as two flop
  BytesPerSecond memory_bandwidth;
  Bytes memory;             ///< nominal size
  Bytes usable_memory;      ///< size that a training process can allocate
  Seconds launch_overhead;  ///< launch overhead of one kernel; 0 on CPUs
  Seconds host_operation;   ///< in which the host issues one operator (strategy.host_operation); 0: no time
  double watts = 0;         ///< power limit; 0: unknown
  int multiprocessors = 0;  ///< multiprocessors that share one kernel; 0: unknown
  double compute_capability = 0;  ///< CUDA's, such as 9.0; 0: it has none
  int pcie_generation = 4;        ///< of PCIe in the device's servers
  bool peer_access = true;        ///< devices read and write each other's memory over PCIe
  BytesPerSecond nvlink{0};       ///< effective rate of one NVLink or xGMI link in one direction; 0: unknown
  std::string nvlink_source;
  std::string successor;  ///< the device that its maker sold next, by its name; empty: unknown
  std::vector<DeviceRate> rates;
  std::string kernels_of;        ///< the device whose shares these are (see with_kernels_of); empty: its own
  bool kernels_assumed = false;  ///< the source of `kernels_of` begins with "assumed"
  std::optional<KernelShares> kernels;  ///< absent: the older rule, with one efficiency fitted on the rates
  std::map<KernelChoice::Precision, PrecisionKernels> precisions;  ///< those of tensor cores
  std::optional<PrecisionKernels> fp8;  ///< products in fp8, if they are chosen (see with_kernels)
  /// Major version of cuDNN, for the older rule: from 3 on it has FFT, from 5 on Winograd.
  int cudnn = 5;
  std::string efficiency_of;  ///< for a device without rates: the device whose efficiency is assumed

  /// Fixed time that each kernel takes in addition to its work.
  Seconds kernel_gap() const { return kernels ? kernels->gap : launch_overhead; }

  /// The kernels in use (see with_kernels).
  KernelChoice choice() const { return kernels ? kernels->choice : KernelChoice{}; }

  bool is_processor() const { return launch_overhead.value == 0; }
};

/// Reads `models/devices/NAME.yaml`; every number is `{value: ..., source: ...}`. Throws InputError.
Device read_device(const YamlValue& value);

/// The name at `kernels_of` in the tree of a device file; null: it has none.
const YamlNode* kernels_of(const YamlNode& device);

/// The tree of a device file whose `kernels_of` names the device `other`: with the `kernels` of `other`, and
/// in each of the `precisions` that stand in the file with the shares, but not the peak, that `other` has
/// there.
/// @throws InputError if `other` has no `kernels`
YamlNode with_kernels_of(YamlNode device, const YamlNode& other);

/// The device with the peak and the shares of the chosen precision, and with the chosen kernels; with fp8
/// those of bf16, and `fp8` beside. A device
/// with tf32 that names no shares of bf16 has those of f16.
/// @throws InputError if the device does not have what is chosen
Device with_kernels(Device device, const KernelChoice& choice);

// The keys of a device file (docs/reference/devices.md), from the fields of device.cpp.
const Keys& device_keys();
const Keys& precisions_keys();

}  // namespace stepcast
