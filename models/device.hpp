#pragma once

#include <string>
#include <vector>

#include "core/units.hpp"
#include "core/yaml.hpp"

namespace stepcast {

/// A training rate of one device that somebody published; for derived traces, nothing else.
struct DeviceRate {
  enum class Use { calibrate, check };  ///< check: only compared with, never fitted on

  std::string model;
  std::int64_t batch = 1;
  double samples_per_second = 0;
  Use use = Use::calibrate;
  std::string source;
};

/// One GPU or one CPU socket, as the roofline rule and the memory verdict need it
/// (`models/devices/NAME.yaml`).
struct Device {
  std::string name;
  FlopsPerSecond peak;  ///< fp32 multiply-adds counted as two
  BytesPerSecond memory_bandwidth;
  Bytes memory;             ///< as sold
  Bytes usable_memory;      ///< what a training process can allocate
  Seconds launch_overhead;  ///< of one kernel; 0 on CPUs
  int multiprocessors = 0;  ///< that work on one kernel; 0: not known (models/cut_times.hpp uses it)
  std::vector<DeviceRate> rates;
  std::string efficiency_of;  ///< without rates: the device whose efficiency is assumed

  bool is_processor() const { return launch_overhead.value == 0; }
};

/// Reads `models/devices/NAME.yaml`; every number is `{value: ..., source: ...}`. Throws InputError.
Device read_device(const YamlValue& value);

}  // namespace stepcast
