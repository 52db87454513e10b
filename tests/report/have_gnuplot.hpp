#pragma once

#include <catch2/catch.hpp>

#include "core/os/process.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast {

/// True if gnuplot is installed; otherwise prints that pictures are not checked.
inline bool have_gnuplot() {
  const TemporaryFolder folder;
  const bool found = run_child({"gnuplot", "--version"}, folder.path()).started;
  if (!found) WARN("gnuplot not found: pictures are not checked");
  return found;
}

}  // namespace stepcast
