#pragma once

#include <map>
#include <string>
#include <vector>

#include "forecast/simulations.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {

/// The error of the model where measurements of other points are known (forecast/posterior.hpp).
struct MeasuredConstants {
  double drift = 1;  ///< factor on the median of the term
  double level = 0;  ///< standard deviation of an error that all points have in common, a logarithm
  double own = 0;    ///< likewise of an error of one point alone
};

/// The error of the model itself: the distribution of log(measured step / forecast step), by class of
/// traffic. Each list has a quantile for each probability. Fitted by tools/documents.py on published
/// figures (docs/notes/2026-11-discrepancy.md).
struct Discrepancy {
  std::vector<double> probabilities;
  std::vector<double> inside_server;    ///< of a step on eight devices of a server, against one device
  std::vector<double> between_servers;  ///< in addition, on two servers against one
  /// Likewise, where a large message between servers has an overhead of kSlowMessage and more.
  std::vector<double> between_servers_slow_messages;
  /// By framework: factor on the distance of inside_server from its median. Others have 1.
  std::map<std::string, double> spreads;
  MeasuredConstants measured = {};
};

/// Reads the content of such a file. @throws InputError
Discrepancy read_discrepancy(const YamlValue& value);

/// Reads models/measured/discrepancy.yaml of the data folder. @throws InputError
Discrepancy shipped_discrepancy(Library& library);

/// The spread of a point's workers over the machine, which scales the term.
struct Spread {
  int devices_of_server = 1;   ///< most devices of the run in one server
  int servers = 1;             ///< servers (nodes) in use
  bool slow_messages = false;  ///< see kSlowMessage
  std::string framework{};     ///< one of framework_names, or empty
};

/// Overhead of a large message between servers that tells sockets of virtual machines (20 us) from verbs (6
/// us).
constexpr Seconds kSlowMessage{15e-6};

/// Without the framework, which an experiment does not have.
Spread spread_of(const Experiment& experiment);

/// Number of samples of the term. All points use the same samples, so that ratios of points are consistent.
constexpr int kDiscrepancySamples = 256;

/// Samples of log(measured step / forecast step): sample k is the quantile inside a server at u_k, at the
/// framework's spread, times log2(devices of a server) / 3, plus the quantile between servers at v_k, times
/// log2(servers). (u_k, v_k) are the points of Hammersley's sequence. All zero for one device.
std::vector<double> log_errors(const Discrepancy& term, const Spread& spread);

/// The samples of the term at each of these points. The error of a figure that `calibrate:` feeds in is taken
/// off, sample by sample: of several such figures, that with the most devices which the point also has, or
/// else the first.
std::vector<std::vector<double>> term_errors(const Scenario& scenario, const std::vector<std::size_t>& points,
                                             Library& library);

/// Sets Simulations::log_errors of the chosen points to those of term_errors.
void add_discrepancy(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                     Simulations& all);

/// The relation of a column to the time of a step.
enum class StepRelation { none, time, rate, ratio_of_rates };
StepRelation relation_to_step(const std::string& column);

/// The values of a column at one point: those of over_draws, each combined with every sample of the term.
/// No step becomes shorter than its compute_seconds, and no point scales better than ideally.
/// Times of whole steps and rates have the term (docs/reference/results.md); other columns are over_draws.
std::vector<double> predictive_values(const Simulations& all, std::size_t point, const std::string& column);

/// True if the term changes the column at this point.
bool has_discrepancy(const Simulations& all, std::size_t point, const std::string& column);

}  // namespace stepcast
