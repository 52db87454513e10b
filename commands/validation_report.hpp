#pragma once

#include <filesystem>
#include <string>

#include "report/results.hpp"

namespace stepcast {

/// Writes the forecast before anything that it forecasts is run, and prints its hash.
void freeze(const Results& predicted, const std::filesystem::path& folder);

/// Joins the forecast with the samples that the ranks wrote into `folder`: tables, plots, and what was
/// learned.
void report_validation(const Results& predicted, const std::string& cluster, int ranks,
                       const std::filesystem::path& folder);

/// "12 runs measured so far: FOLDER/samples.jsonl", of a validation that did not reach its end.
std::string measured_so_far(const std::filesystem::path& folder);

}  // namespace stepcast
