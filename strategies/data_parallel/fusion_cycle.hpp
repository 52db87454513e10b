#pragma once

#include <vector>

#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// A thread that looks every `period` for gradients that are announced on all workers, agrees on them with
/// the other workers, waits for the data, and sums those of one look together, in buffers of at most
/// `threshold`. Source: Horovod, docs/tensor-fusion.rst; docs/timeline.rst (WAIT_FOR_DATA);
/// BackgroundThreadLoop in horovod/common/operations.cc.
struct FusionCycle {
  Seconds period;
  Bytes threshold;
  Seconds negotiation;  ///< time to agree, after each look
  Seconds host_lead;  ///< how long before its data a gradient is announced: the host runs ahead of the device
};

/// Buckets of the gradients that are announced between two looks. The first look is at the start of the
/// backward pass. `wait` of a bucket is the time from its last gradient to the start of its sum.
/// @param times  of the layers; gradients of a layer are ready at the end of its backward pass
std::vector<Bucket> buckets_of_cycles(const std::vector<LayerGradients>& layers,
                                      const std::vector<LayerSeconds>& times, Bytes element,
                                      const FusionCycle& cycle);

/// Time of `collectives` small collectives of the workers' hosts, one after the other: each a binomial tree
/// over the servers and over the workers of a server, collectives (ceil(log2 servers) message between servers
/// + ceil(log2 workers of a server) message inside). Source: Horovod's MPIController
/// (horovod/common/mpi/mpi_controller.cc) gathers the names of ready gradients at rank 0 with MPI_Gather and
/// MPI_Gatherv and sends its answer with two MPI_Bcast.
Seconds negotiation_seconds(const Platform& platform, const std::vector<int>& endpoints, int collectives);

/// The buckets by `bucket`, `first_bucket`, `cycle`, `negotiation` and
/// `host_lead`. @throws InputError
std::vector<Bucket> read_gradient_buckets(const YamlMap& map, const Setting& setting, Bytes element,
                                          const Workload& workload);

}  // namespace stepcast
