#pragma once

#include "core/keys.hpp"

namespace stepcast {

// The keys of a device file (docs/reference/trace-files.md). The reader of device.cpp uses these tables.
const Keys& device_keys();
const Keys& device_rate_keys();
const Keys& kernel_share_keys();
const Keys& precision_keys();  ///< one of `precisions`: `peak` and the shares that differ from fp32
const Keys& precisions_keys();
const Keys& sourced_value_keys();  ///< `value` and `source`, both required

}  // namespace stepcast
