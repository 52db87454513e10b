#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "commands/summary.hpp"
#include "report/manifest.hpp"

namespace stepcast {

/// What `run` made of a scenario.
struct Outputs {
  Results results;
  std::vector<PublishedRow> published;
  std::vector<Sensitivity> sensitivity;
  std::string sensitive_point, sensitive_column;  ///< that it is of
};

/// Writes results.csv, results.jsonl, manifest.json, published.csv and sensitivity.csv where there is
/// something to say, and draws the plots. @return lines to print about plots that could not be drawn
std::vector<std::string> write_outputs(const std::filesystem::path& folder, const Outputs& outputs,
                                       const Manifest& manifest, bool plots);

}  // namespace stepcast
