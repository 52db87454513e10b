#include "validate/batch_writer.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast {

void BatchWriter::write(const std::vector<float>& values, Tensor& to) {
  DeviceMemory* device = backend_.device_memory();
  if (device == nullptr) return to.write(values);
  if (values.size() != to.elements())
    throw std::invalid_argument("write: as many values as the shape has elements");
  Stage& stage = stages_[&to];
  if (stage.host == nullptr) {
    stage = {device->host_memory(values.size()), device->allocate(values.size()), nullptr};
    stage.read = device->mark();  // the device zeroes it first
  }
  device->wait(stage.read);
  std::copy(values.begin(), values.end(), stage.host.get());
  device->to_device(stage.host.get(), stage.device.get(), values.size());
  backend_.copy_in(stage.device.get(), to);
  stage.read = device->mark();
}

}  // namespace stepcast
