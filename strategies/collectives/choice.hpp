#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "strategies/collectives/algorithms.hpp"

namespace stepcast {

enum class Algorithm {
  automatic,
  ring,
  halving_doubling,
  recursive_doubling,
  binomial_tree,
  double_tree,
  hierarchical,
  mpi  ///< the MPI library's own: its decision is known of Open MPI 4.1, its messages' cost is not
};

/// How a scenario asks for its all-reduce.
struct AllReduceChoice {
  Algorithm algorithm = Algorithm::automatic;
  int channels = 1;  ///< rings side by side
  LocalPart local = LocalPart::reduce_scatter;
  NetworkPart network = NetworkPart::halving_doubling;
  Bytes tree_piece{262144};  ///< piece of the double tree's pipeline
};

const std::vector<std::string>& algorithm_names();     ///< in the order of Algorithm
const std::vector<std::string>& local_part_names();    ///< in the order of LocalPart
const std::vector<std::string>& network_part_names();  ///< in the order of NetworkPart

/// Pieces of the double tree's pipeline for a buffer; 1 .. 512.
int tree_pieces(const AllReduceChoice& choice, Bytes buffer);

/// The schedule of a choice other than `automatic`.
std::shared_ptr<const Schedule> all_reduce_schedule(const AllReduceChoice& choice, const Group& group,
                                                    Bytes buffer);

/// What plays a choice other than `automatic`: itself, or for `mpi` the algorithm that Open MPI 4.1 takes for
/// float sums of so many bytes. Its segmented ring counts as `ring`, its reduce and broadcast as
/// `binomial_tree`, its Rabenseifner as `halving_doubling`, which differs for other than powers of two.
/// Source: Open MPI 4.1, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, commutative operations.
AllReduceChoice played_choice(const AllReduceChoice& choice, int ranks, Bytes buffer);

/// What `automatic` chooses from.
std::vector<AllReduceChoice> candidates(const AllReduceChoice& choice, const Group& group);

}  // namespace stepcast
