#pragma once

#include <functional>
#include <string>
#include <vector>

#include "commands/collectives/estimate.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// The file of a value of `--measured`: FILE, WORKERS=FILE or COLLECTIVE=FILE.
std::string measured_file(const std::string& text);

/// True if a value of `--measured` names the output of nccl-tests.
bool is_nccl_tests(const std::string& text);

/// The tables of nccl-tests among the values of `--measured`.
/// @throws InputError for a table that does not say what it is of
std::vector<MeasuredCollective> measured_collectives(const std::vector<std::string>& texts);

/// Logarithm of the likelihood of the tables on a platform. Of each table the mean of ln(estimate / measured)
/// counts, once from 1 MiB on and once below, because all sizes of one range miss together. It is taken as
/// normal with the root mean square of the 43 and 33 published tables (docs/notes/2026-11-nccl-tests.csv).
/// @throws InputError if the platform is without NCCL or too small
double log_likelihood(const std::vector<MeasuredCollective>& tables, const Platform& platform);

/// The same for the values of `--measured` and an experiment of the platform; empty if they name no table.
std::function<double(const Experiment&)> network_likelihood(const std::vector<std::string>& texts);

/// A line for each table: by how much the platform of the draws that remain is off.
std::vector<std::string> measured_network_lines(const std::vector<MeasuredCollective>& tables,
                                                const Platform& platform);

}  // namespace stepcast
