#pragma once

#include "core/fields.hpp"

namespace stepcast {

/// `source` of a mapping with plain figures, which nothing reads.
template <class T>
Field<T> source_field() {
  return field<T>({"source", "text", "", "none", "source of plain figures"});
}

}  // namespace stepcast
