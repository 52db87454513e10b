#pragma once

#include "core/fields.hpp"

namespace stepcast {

// The keys of a platform file (docs/reference/platforms.md), from the fields of its readers.
const Keys& platform_keys();
const Keys& node_keys();     ///< of every kind; keys_of_kind gives those of one
const Keys& network_keys();  ///< of every kind
const Keys& software_keys();

/// `source` of a mapping with plain figures, which nothing reads.
template <class T>
Field<T> source_field() {
  return field<T>({"source", KeyType::text, "none", "source of plain figures"});
}

}  // namespace stepcast
