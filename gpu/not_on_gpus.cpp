#include "gpu/not_on_gpus.hpp"

#include <algorithm>

#include "validate/learning_runs.hpp"
#include "validate/validation.hpp"

namespace stepcast {
namespace {

bool asks_mpi(const Plan& plan) {
  return std::ranges::any_of(
      plan.communicators, [](const Communicator& one) { return one.all_reduce.algorithm == Algorithm::mpi; });
}

}  // namespace

std::string why_not_on_gpus(const Experiment& experiment, int ranks) {
  if (asks_mpi(experiment.plan)) return "all_reduce: mpi is not there on GPUs, whose ranks know no MPI";
  const std::string why = why_not_for_real(experiment.plan, ranks, false);
  return why.empty() && experiment.learning ? why_not_learned(experiment) : why;
}

}  // namespace stepcast
