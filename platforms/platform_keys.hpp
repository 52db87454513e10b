#pragma once

#include "core/keys.hpp"

namespace stepcast {

// The keys of a platform file (docs/reference/platforms.md). The readers of platform.cpp and software.cpp use
// these tables.
const Keys& platform_keys();
const Keys& node_keys();     ///< of every kind; keys_of_kind gives those of one
const Keys& network_keys();  ///< of every kind
const Keys& level_keys();    ///< of one level of a fat tree
const Keys& link_keys();
const Keys& storage_keys();  ///< of both kinds
const Keys& messages_keys();
const Keys& message_row_keys();
const Keys& software_keys();

}  // namespace stepcast
