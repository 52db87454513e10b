#include "gpu/ranks/unsupported.hpp"

#include <algorithm>

#include "runtime/learning/learning_runs.hpp"
#include "runtime/scenario_points/validation_plan.hpp"

namespace stepcast {
namespace {

bool uses_mpi(const Plan& plan) {
  return std::ranges::any_of(
      plan.communicators, [](const Communicator& one) { return one.all_reduce.algorithm == Algorithm::mpi; });
}

}  // namespace

std::string unsupported_on_gpus(const Experiment& experiment, int ranks) {
  if (uses_mpi(experiment.plan))
    return "all_reduce: mpi is not supported on GPUs: their ranks do not use MPI";
  const std::string why = unsupported_in_real_run(experiment.plan, ranks, false);
  return why.empty() && experiment.learning ? unsupported_learning(experiment) : why;
}

}  // namespace stepcast
