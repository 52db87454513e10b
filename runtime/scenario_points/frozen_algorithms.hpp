#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The file next to the forecast that names the algorithm of every all-reduce with `all_reduce: automatic`.
/// The forecast writes it before the runs, and the ranks execute these algorithms.
std::filesystem::path all_reduce_file(const std::filesystem::path& folder);

/// The rows of a point in that file: `point`, `collective` (its number in the plan), `bytes` of its buffer,
/// `algorithm`, and for `hierarchical` `inside_node` and `between_nodes`, named as in a scenario.
std::vector<Row> all_reduce_rows(const std::string& point, const Plan& plan, const AllReduceChoices& choices);

/// The choices without a forecast: the first algorithm that `automatic` chooses from, which is the ring.
AllReduceChoices choices_without_forecast(const Plan& plan);

/// The choices of a point for a plan, read from that file. A plan without automatic all-reduces needs no
/// file.
/// @throws InputError if the file does not name the algorithm of every automatic all-reduce of the point
AllReduceChoices read_all_reduces(const std::filesystem::path& file, const std::string& point,
                                  const Plan& plan);

}  // namespace stepcast
