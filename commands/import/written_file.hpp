#pragma once

#include <fmt/format.h>

#include <stdexcept>

#include "core/error.hpp"

namespace stepcast {

/// What `read` returns of a file that an import has written.
/// @throws std::runtime_error if it cannot be read: the fault is the importer's, not the user's
template <class Read>
auto read_written(const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    throw std::runtime_error(fmt::format(
        "stepcast cannot read the file that it has just written, which is its own fault; please report "
        "it: {}",
        error.what()));
  }
}

}  // namespace stepcast
