#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "platforms/discovery/discovered.hpp"
#include "strategies/registry.hpp"

namespace stepcast {

/// The choices from which a first scenario is written.
struct ScenarioStart {
  std::string name;           ///< of the scenario and its results
  std::string model = {};     ///< name or path
  std::string platform = {};  ///< name or path
  std::string trace = {};     ///< a name of models/traces, or "derived"
  std::string strategy = kPlainReplicas;
  std::string example = {};  ///< the strategy's example, whose keys come into the file
  std::string kernels = {};  ///< value of the key `kernels`, for the rule for layer times; empty: left out
  bool half = false;         ///< `kernels` names f16, bf16 or fp8
  bool half_transformer = false;  ///< f16 or bf16, of a transformer
  bool takes_precision = false;   ///< the strategy has the key `precision`
  bool recompute = false;         ///< the strategy computes activations again
  int batch = 32;                 ///< samples of a worker
  int least = 1, most = 8;        ///< workers, doubled from the first to the last
  int nodes = 0;                  ///< set if the platform's own number of nodes is too small
};

/// The YAML text, with a comment at each key.
std::string scenario_text(const ScenarioStart& start);

/// The YAML text of a small network of images, with a comment at each key.
std::string model_text(const std::string& name);

/// The choices from which a first platform file is written.
struct PlatformStart {
  enum class Nvlinks { none, to_switch, pairs };

  std::string name, device = {};
  int nodes = 4, devices = 8, nics = 1;
  std::string nic = "200 Gbit/s";   ///< of one NIC
  Nvlinks nvlinks = Nvlinks::none;  ///< of each device to an NVSwitch, or between every two devices of a node
  std::string nvlink = {};          ///< rate of such a link
};

/// The platform to be written. @param device  the one that `start` names
DiscoveredPlatform platform_of(const PlatformStart& start, const Device& device);

/// The figures of a data sheet from which a first device file is written. An empty text: as on the similar
/// device.
struct DeviceStart {
  std::string name;
  std::string like = "a100-40gb";  ///< the similar device: a name or path
  std::string peak = {};           ///< in fp32, without tensor cores
  std::string tensor_peak = {};    ///< in fp16 or bf16 on tensor cores, without sparsity
  std::string memory_bandwidth = {}, memory = {};
};

/// The YAML text, with the shares of `like`, the file of the similar device, at each figure that was not
/// given.
/// @throws InputError if a peak of tensor cores is given and the similar device has none
std::string device_text(const DeviceStart& start, const YamlNode& like);

/// The trace of models/traces that was taken of this network with this batch on this device, or "derived".
std::string matching_trace(const std::vector<std::string>& traces, const std::string& model,
                           const std::string& device, int batch);

}  // namespace stepcast
