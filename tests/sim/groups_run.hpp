#pragma once

#include "sim/simulation.hpp"
#include "tests/sim/compared.hpp"
#include "tests/sim/groups_plan.hpp"

namespace stepcast {

/// Simulates a random step.
/// @param sigma  of lognormal jitter; 0: none
/// @param scale  an additional factor on the gradients
inline ChildResult groups_run(const RandomGroups& g, Fidelity fidelity, Folding fold, double sigma,
                              double scale = 1) {
  return simulated_in_child([&] {
    const Platform platform = platform_of(g.cluster);
    Workload workload = three_layers({1});
    for (Bucket& bucket : workload.buckets) bucket.gradient.value *= g.cluster.scale * scale;
    for (LayerSeconds& layer : workload.median) layer = {g.cluster.backward / 2, g.cluster.backward, 0};
    const Plan plan = GroupsPlan(g, platform, std::move(workload)).made();
    Simulation simulation;
    simulation.platform = &platform;
    simulation.plan = &plan;
    simulation.bandwidths = LinkBandwidths(platform);
    slow_nics(g.cluster, simulation.bandwidths);
    simulation.fidelity = fidelity;
    if (fidelity == Fidelity::message) simulation.link_sharing = LinkSharing::simgrid;  // the oracle
    simulation.fold = fold;
    simulation.noise.jitter = sigma > 0 ? Noise::Jitter::lognormal : Noise::Jitter::none;
    simulation.noise.sigma = sigma;
    return simulate(simulation);
  });
}

}  // namespace stepcast
