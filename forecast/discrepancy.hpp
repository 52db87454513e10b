#pragma once

#include <string>
#include <vector>

#include "forecast/simulations.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {

/// The error of the model where measurements of other points are known (forecast/posterior.hpp).
struct MeasuredConstants {
  double level = 0;        ///< standard deviation of an error that all points have in common
  double own = 0;          ///< standard deviation of an error of one point alone
  double alternative = 0;  ///< standard deviation of an error that points of the same layout have in common
  double detail = 0;       ///< the same of points with equal details (forecast/draws/alternatives.hpp)
  double doubling = 0;     ///< scale of the term for each doubling of the devices, the same in all of them
  double walk = 0;         ///< scale of what each doubling adds, whatever others add
  /// What measured points miss the simulation by (root mean square) that doubles `own`, `doubling` and
  /// `walk`.
  double misfit = 1;
};

/// The error of the model itself: the distribution of log(measured step / forecast step) on eight devices of
/// a server. Its median is 0: a forecast is the simulation's. Fitted by tools/documents.py on published
/// figures (docs/notes/2026-11-discrepancy.md).
struct Discrepancy {
  std::vector<double> probabilities;
  std::vector<double> quantiles;  ///< one for each probability
  MeasuredConstants measured = {};
};

/// Reads the content of such a file. @throws InputError
Discrepancy read_discrepancy(const YamlValue& value);

/// Reads models/measured/discrepancy.yaml of the data folder. @throws InputError
Discrepancy shipped_discrepancy(Library& library);

/// The spread of a point's workers over the machine, which scales the term.
struct Spread {
  int devices_of_server = 1;  ///< most devices of the run in one server
  int servers = 1;            ///< servers (nodes) in use
};

Spread spread_of(const Experiment& experiment);

/// Number of samples of the term. All points use the same samples, so that ratios of points are consistent.
constexpr int kDiscrepancySamples = 256;

/// Samples of log(measured step / forecast step): the quantile at u_k times log2(devices of a server) / 3,
/// plus, with several servers, the quantile at v_k times 0.7 + log2(servers) / 10. (u_k, v_k) are the points
/// of Hammersley's sequence. All zero for one device.
std::vector<double> log_errors(const Discrepancy& term, const Spread& spread);

/// The samples of the term at each of these points. The error of a figure that `calibrate:` feeds in is taken
/// off, sample by sample: of several such figures, that with the most devices which the point also has, or
/// else the first.
std::vector<std::vector<double>> term_errors(const Scenario& scenario, const std::vector<std::size_t>& points,
                                             Library& library);

/// The same where other points are measured: what grows with the devices. The quantile at u_k is multiplied
/// by `doubling` (MeasuredConstants) times log2(devices), and each stretch between measured or fed-in numbers
/// of devices adds the quantile at a number of its own times `walk` and the root of its doublings: a random
/// walk, so what two points differ by is not carried on in a straight line. @param rows  results with the
/// number of devices, one for each point of the scenario
std::vector<std::vector<double>> grown_errors(const Scenario& scenario,
                                              const std::vector<std::size_t>& points,
                                              const std::vector<Row>& rows, Library& library,
                                              const MeasuredConstants& constants);

/// Sample `k` of kDiscrepancySamples of a variable that is uniform between 0 and 1; other streams have
/// another order.
double uniform_sample(unsigned k, std::size_t stream);

/// Sets Simulations::log_errors of the chosen points to those of term_errors.
void add_discrepancy(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                     Simulations& all);

/// The relation of a column to the time of a step.
enum class StepRelation { none, time, rate, ratio_of_rates };
StepRelation relation_to_step(const std::string& column);

/// True for the columns of a step's parts, such as compute_seconds.
bool is_part_of_step(const std::string& column);

/// The values of a column at one point: those of over_draws, each combined with every sample of the term.
/// No step becomes shorter than its compute_seconds, and no point scales better than ideally.
/// Times of whole steps and rates have the term (docs/reference/results.md); other columns are over_draws.
std::vector<double> predictive_values(const Simulations& all, std::size_t point, const std::string& column);

/// The values of a column at one point, one for each draw, with the median error of the model: 0 unless
/// measurements say more (posterior.hpp). A point's forecast is their median.
std::vector<double> central_values(const Simulations& all, std::size_t point, const std::string& column);

/// True if the term changes the column at this point.
bool has_discrepancy(const Simulations& all, std::size_t point, const std::string& column);

}  // namespace stepcast
