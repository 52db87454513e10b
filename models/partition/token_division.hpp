#pragma once

#include <cstdint>
#include <vector>

#include "models/partition/sequence_partition.hpp"
#include "models/partition/spatial_partition.hpp"

namespace stepcast {

/// How ranks that compute with kernels divide the tokens of every sample.
struct TokenDivision {
  bool by_tensor = false;  ///< ranks that share the layers divide the tokens between them (divide_tokens)
  int context = 1;         ///< ranks with different tokens of every layer (divide_context)
  ContextExchange exchange = ContextExchange::ring;  ///< with `context`

  bool any() const { return by_tensor || context > 1; }
};

/// What a layer exchanges with ranks that have other tokens of the same samples.
struct TokenExchange {
  enum class Form {
    gathered,   ///< it reads all tokens: its input is gathered, its error signals are reduce-scattered
    scattered,  ///< its outputs are partial sums of all tokens, which are reduce-scattered; error signals are
                ///< gathered
    heads,      ///< attention with all tokens of some heads: two all-to-alls in each pass
    keys,       ///< attention with the queries of its own tokens: keys and values are gathered, and their
                ///< gradients reduce-scattered
  };

  Form form{};
  int place = 0;                          ///< of this rank in the group that exchanges
  std::vector<std::vector<Rows>> tokens;  ///< for each rank of the group, its tokens of a sample
};

}  // namespace stepcast
