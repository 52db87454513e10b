#include "validate/stored_values.hpp"

#include <algorithm>

namespace stepcast {

std::vector<float> stored_values(const Network& network) {
  const ParameterView& all = network.all_parameters();
  DeviceMemory* device = network.backend().device_memory();
  if (device == nullptr) return {all.value, all.value + all.elements};
  std::vector<float> values(all.elements);
  device->to_host(device->mark(), all.value, values.data(), all.elements);
  return values;
}

void store_values(const float* values, Network& network) {
  const ParameterView& all = network.all_parameters();
  DeviceMemory* device = network.backend().device_memory();
  if (device == nullptr) {
    std::copy_n(values, all.elements, all.value);
    return;
  }
  network.backend().finish();  // or what still computes would read the new values
  device->to_device(values, all.value, all.elements);
}

}  // namespace stepcast
