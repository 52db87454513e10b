#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "core/words.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Algorithm of an all-reduce.
enum class Algorithm {
  automatic,
  ring,
  halving_doubling,
  recursive_doubling,
  binomial_tree,
  double_tree,
  hierarchical,
  mpi,      ///< the choice of the MPI library, by the decision rules of Open MPI 4.1
  aluminum  ///< the choice of LBANN and Aluminum on Sierra, by ranks and size
};

/// Options of an all-reduce, from the scenario.
struct AllReduceChoice {
  Algorithm algorithm = Algorithm::automatic;
  int channels = 1;  ///< rings that share the buffer
  LocalPart local = LocalPart::reduce_scatter;
  NetworkPart network = NetworkPart::halving_doubling;
  Bytes tree_piece{262144};  ///< size of the pieces in the double tree's pipeline
};

const Words<Algorithm>& algorithm_words();
const Words<LocalPart>& local_part_words();
const Words<NetworkPart>& network_part_words();
const std::vector<std::string>& algorithm_names();     ///< in the order of Algorithm
const std::vector<std::string>& local_part_names();    ///< in the order of LocalPart
const std::vector<std::string>& network_part_names();  ///< in the order of NetworkPart

/// Number of pieces in the double tree's pipeline for a buffer: 1 to 512.
int tree_pieces(const AllReduceChoice& choice, Bytes buffer);

/// The schedule of a choice other than `automatic`.
std::shared_ptr<const Schedule> all_reduce_schedule(const AllReduceChoice& choice, const Group& group,
                                                    Bytes buffer);

/// Resolves `mpi` and `aluminum` to the algorithm that the library takes for a sum of floats of this size;
/// returns any other choice unchanged. Rabenseifner's algorithm counts as `halving_doubling`, which differs
/// if `ranks` is no power of two. Open MPI's segmented ring counts as `ring`, its reduce and broadcast as
/// `binomial_tree`. Sources: Open MPI 4.1, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, commutative
/// operations; LLNL/lbann, src/comm.cpp, lbann_comm::allreduce ("Tuned for Sierra": rings of NCCL, or MPI for
/// small matrices), and LLNL/Aluminum, MPIBackend::Allreduce (up to 512 elements recursive doubling).
AllReduceChoice resolved_choice(const AllReduceChoice& choice, int ranks, Bytes buffer);

/// Choices among which `automatic` takes the fastest.
std::vector<AllReduceChoice> candidates(const AllReduceChoice& choice, const Group& group);

}  // namespace stepcast
