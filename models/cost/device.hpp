#pragma once

#include <string>
#include <vector>

#include "core/units.hpp"
#include "core/yaml.hpp"

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

/// One GPU or one CPU socket, with the data that the roofline rule and the memory check need
/// (`models/devices/NAME.yaml`).
struct Device {
  std::string name;
  FlopsPerSecond peak;  ///< fp32; a multiply-add counts as two flop
  BytesPerSecond memory_bandwidth;
  Bytes memory;             ///< nominal size
  Bytes usable_memory;      ///< size that a training process can allocate
  Seconds launch_overhead;  ///< launch overhead of one kernel; 0 on CPUs
  int multiprocessors = 0;  ///< multiprocessors that share one kernel; 0: unknown (see filled_share)
  std::vector<DeviceRate> rates;
  std::string efficiency_of;  ///< for a device without rates: the device whose efficiency is assumed

  bool is_processor() const { return launch_overhead.value == 0; }
};

/// Reads `models/devices/NAME.yaml`; every number is `{value: ..., source: ...}`. Throws InputError.
Device read_device(const YamlValue& value);

}  // namespace stepcast
