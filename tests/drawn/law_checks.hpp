#pragma once

#include <limits>

#include "tests/drawn/laws.hpp"

namespace stepcast::drawn {

/// Every message of every worker, each of which has its program: the reference of all forms.
inline constexpr Form kMessages{Fidelity::message, Folding::never, LinkSharing::max_min};

/// What stepcast chooses, with the sharing of kMessages.
inline constexpr Form kMaxMin{.sharing = LinkSharing::max_min};

/// Differences of times that are computed from equal numbers in another order.
constexpr double kRounding = 1e-9;
/// Of one program for many workers to one program each (docs/explanation/simulation.md, "Folding").
constexpr double kFoldedExactly = 1e-8;
/// Of fidelities that the results call exact or close (docs/explanation/simulation.md, "How `automatic`
/// chooses").
constexpr double kClose = 0.01;

/// Nothing is claimed.
constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// |value / reference - 1|; a large number where that is none.
double difference(double value, double reference);

/// How the results say that a run was simulated, such as "message, unfolded".
std::string result_text(const Outcome& outcome);

// Every form agrees with kMessages within what its results say. SimGrid shares links as the built-in solver
// does. A simulation has the same bits when it is repeated.
void check_forms(Trial& trial, Findings& findings);
void check_simgrid(Trial& trial, Findings& findings);
void check_repeated(Trial& trial, Findings& findings);

// All parts of a step are finite and none is negative; a step is at least as long as the work of a worker and
// as the bytes of a link, and at most as long as all its parts one after the other.
void check_bounds(Trial& trial, Findings& findings);

// With every time halved and every bandwidth doubled, a step takes half as long. With more bandwidth alone it
// takes no longer. With equal nodes in another order it takes as long.
void check_halved(Trial& trial, Findings& findings);
void check_faster(Trial& trial, Findings& findings);
void check_permuted(Trial& trial, Findings& findings);

}  // namespace stepcast::drawn
