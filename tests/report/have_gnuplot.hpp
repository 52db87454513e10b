#pragma once

#include <catch2/catch.hpp>

#include "report/child_process.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast {

/// Says so where pictures cannot be checked.
inline bool have_gnuplot() {
  const TemporaryFolder folder;
  const bool found = run_child({"gnuplot", "--version"}, folder.path()).started;
  if (!found) WARN("gnuplot not found: pictures are not checked");
  return found;
}

}  // namespace stepcast
