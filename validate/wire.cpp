#include "validate/wire.hpp"

namespace stepcast {

WireMemory Wire::of(std::size_t elements) {
  DeviceMemory* const device = backend_.device_memory();
  if (elements > elements_) {
    backend_.finish();  // what still reads the old memory
    there_ = backend_.allocate(elements);
    here_ = device == nullptr ? there_ : device->host_memory(elements);
    elements_ = elements;
  }
  return {there_.get(), {here_.get(), elements}, device};
}

}  // namespace stepcast
