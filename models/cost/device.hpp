#pragma once

#include <optional>
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

/// The shares of a device's rates that the kernels of one library generation reach (cuDNN and a framework of
/// 2019 and later).
struct KernelShares {
  Seconds gap;             ///< between two kernels
  double streaming = 1;    ///< share of the memory bandwidth: ReLU, additions, pools, updates
  double batch_norm = 1;   ///< share of the bandwidth: batch norm
  double layer_norm = 1;   ///< share of the bandwidth: layer norm
  double dense = 1;        ///< share of the peak: dense layers and attention
  double pointwise = 1;    ///< share of the peak: convolutions with a window of 1
  double window = 1;       ///< share of the peak: other convolutions, beside `winograd`
  double winograd = 1;     ///< work saved for 2-D windows of 3 and more at stride 1
  Seconds recurrent_step;  ///< small kernels of one time step of an LSTM or GRU
  double weights = 1;      ///< gradients of filters: factor on `pointwise` and `window`
  /// Channels with which batch norm reaches half of its share, as a block of threads works on one channel.
  double batch_norm_channels = 0;
  Bytes cache{};  ///< size up to which the next layer reads an output from the second-level cache; 0: none
  /// Above 0: convolutions with a window of 2 and more copy inputs and outputs to another layout, and pad
  /// their input channels to a multiple of this.
  double channel_multiple = 0;
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
  std::optional<KernelShares> kernels;  ///< absent: the older rule, with one efficiency fitted on the rates
  std::string efficiency_of;  ///< for a device without rates: the device whose efficiency is assumed

  /// Time that a kernel takes beside its work.
  Seconds kernel_gap() const { return kernels ? kernels->gap : launch_overhead; }

  bool is_processor() const { return launch_overhead.value == 0; }
};

/// Reads `models/devices/NAME.yaml`; every number is `{value: ..., source: ...}`. Throws InputError.
Device read_device(const YamlValue& value);

}  // namespace stepcast
