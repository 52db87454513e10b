#include <fmt/format.h>

#include <cmath>

#include "validate/validation.hpp"

// What a plan needs that real runs have not.

namespace stepcast {
namespace {

const Communicator& communicator_of(const Plan& plan, const Collective& collective) {
  return plan.communicators.at(static_cast<std::size_t>(collective.communicator));
}

/// Owners sum compressed gradients with the messages of a ring; others would quantize at every hop.
std::string why_not_compressed(const Plan& plan, const Collective& sum) {
  const bool ring = communicator_of(plan, sum).all_reduce.algorithm == Algorithm::ring;
  if (ring || sum.kind != Collective::Kind::all_reduce || plan.workers == 1) return {};
  return "compressed gradients are summed by their owners, with the messages of a ring; give all_reduce: "
         "ring";
}

/// MPI knows one group here: all ranks.
std::string why_not_by_library(const Plan& plan, const Collective& sum, int ranks) {
  const Communicator& one = communicator_of(plan, sum);
  if (sum.kind != Collective::Kind::all_reduce || one.all_reduce.algorithm != Algorithm::mpi) return {};
  if (one.size == ranks && sum.buffer.array == Array::gradients) return {};
  return fmt::format("all_reduce: mpi sums gradients over all {} ranks of the run, this sum is over {}",
                     ranks, one.size);
}

}  // namespace

std::string why_not_for_real(const Plan& plan, int ranks, bool sleep) {
  if (static_cast<int>(plan.endpoints.size()) > ranks) {
    return fmt::format("it takes {} ranks, servers included; give --ranks {}", plan.endpoints.size(),
                       plan.endpoints.size());
  }
  const NetworkSharing& sharing = plan.sharing;
  if (!sleep && !sharing.simulated_only.empty()) return "simulated only: " + sharing.simulated_only;
  if (plan.workloads.size() != 1) return "its ranks compute different parts of the network";
  if (!plan.simulated_only.empty()) return plan.simulated_only;
  if (plan.load_data) return "data loading is simulated only";
  for (const Communicator& one : plan.communicators) {
    if (one.streams > 1) return "several streams are simulated only";
  }
  for (const Collective& one : plan.collectives) {
    if (const std::string why = why_not_by_library(plan, one, ranks); !why.empty()) return why;
    if (one.buffer.codec.kind != Compression::none) {
      const std::string why = why_not_compressed(plan, one);
      if (!why.empty()) return why;
      continue;
    }
    const double elements = static_cast<double>(one.buffer.elements.size());
    const double sent = (one.by_group ? communicator_of(plan, one).groups() : 1) * one.buffer.size.value;
    if (elements > 0 && std::abs(sent - 4 * elements) > 0.01 * 4 * elements)
      return "gradients of another size than 4 bytes an element (precision: mixed) are simulated only";
    const bool between_layers =
        one.buffer.array == Array::statistics || one.buffer.array == Array::activations;
    if (between_layers && sharing.form == NetworkSharing::Form::none) {
      return "exchanging activations or statistics is simulated only";
    }
  }
  return {};
}

std::string why_not_drawn(const Noise& noise, bool sleep) {
  if (sleep && noise.jitter == Noise::Jitter::trace)
    return "noise.jitter trace: ranks that sleep replay no measured steps; give none, lognormal or layers";
  const bool drawn = noise.jitter == Noise::Jitter::lognormal || noise.jitter == Noise::Jitter::layers;
  if (!sleep && (drawn || noise.straggler_share > 0))
    return "noise that is drawn: only ranks that sleep draw it; leave it out, give noise.jitter trace, or "
           "--sleep";
  return {};
}

}  // namespace stepcast
