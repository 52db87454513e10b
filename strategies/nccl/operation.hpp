#pragma once

#include "core/units.hpp"

namespace stepcast {

/// The operations of nccl-tests.
enum class NcclOperation {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_receive
};

enum class NcclAlgorithm { ring, tree, nvls, nvls_tree, direct };
enum class NcclProtocol { ll, ll128, simple };

/// Time of a collective with one algorithm and protocol.
struct NcclTime {
  Seconds time;
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
};

}  // namespace stepcast
