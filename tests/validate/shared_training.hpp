#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.hpp"

namespace stepcast::test {

/// A strategy `tensor` with these options.
struct SharedCase {
  std::string options;
  int ranks, ways;
  std::int64_t batch;  ///< of a replica
};

/// What computes for a rank, and who carries what lies in memory of its device.
struct SharedPlace {
  std::unique_ptr<Backend> (*make)() = make_onednn_backend;
  bool carried = false;  ///< by somebody who reads and writes there; else through the host
  double margin = 2e-5;  ///< of parameters and losses
};

/// Two blocks, four heads; 10 words, which four ranks cannot share evenly.
extern const std::string kStack;
/// A class a sample: dense layers that nobody shares before and after the blocks.
extern const std::string kUnshared;

/// Trains some steps for real on ranks that are threads and checks that every rank's parts of the parameters
/// are those that one rank with the whole network on oneDNN comes to, and so is the loss where its classes
/// are shared and there is one replica.
void check_trains_as_whole(const std::string& model, const SharedCase& c, const SharedPlace& place = {});

}  // namespace stepcast::test
