#pragma once

#include <memory>
#include <string>

#include "kernels/network/backend.hpp"
#include "kernels/onednn/backend.hpp"

namespace stepcast::test {

/// Options of a strategy `tensor` or another whose ranks have parts of every layer.
struct SharedCase {
  std::string options;
  int ranks, ways;
  std::int64_t batch;  ///< of a replica
  std::string kind = "tensor";
};

/// The backend of a rank, and how collectives on device memory are executed.
struct SharedPlace {
  std::unique_ptr<Backend> (*make)() = make_onednn_backend;
  bool by_backend = false;  ///< by a collective backend; false: staged through the host
  double margin = 2e-5;     ///< of parameters and losses
};

/// Two blocks, four heads; 10 words, which four ranks cannot share evenly.
extern const std::string kStack;
/// One class for each sample, with dense layers before and after the blocks that are not tensor-parallel.
extern const std::string kUnshared;
/// Convolutions of which one shares its input with an addition, batch norm, a pool and a flattening.
extern const std::string kFilters;
/// Dense layers of tokens, which are flattened.
extern const std::string kTokens;
/// Locally connected layers with halos, pools and dense layers.
extern const std::string kLocal;
/// Dense layers and a loss with a target for each unit.
extern const std::string kElements;
/// A locally connected layer, a pool, and a loss with a target for each unit.
extern const std::string kUnits;
/// Convolutions, a pool and dense layers.
extern const std::string kConvolved;

/// Trains some steps on ranks that are threads. Checks that every rank's shard of the parameters equals that
/// of one rank with the whole network on oneDNN, and so does the loss if its classes are partitioned and
/// there is one replica.
void check_trains_as_whole(const std::string& model, const SharedCase& c, const SharedPlace& place = {});

}  // namespace stepcast::test
