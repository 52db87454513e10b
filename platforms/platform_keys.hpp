#pragma once

#include "core/keys.hpp"

namespace stepcast {

// The keys of a platform file (docs/reference/platforms.md), from the fields of its readers.
const Keys& platform_keys();
const Keys& node_keys();     ///< of every kind; keys_of_kind gives those of one
const Keys& network_keys();  ///< of every kind
const Keys& software_keys();

}  // namespace stepcast
