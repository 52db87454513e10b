#pragma once

#include <vector>

#include "kernels/network.hpp"
#include "models/cut.hpp"
#include "strategies/plan.hpp"
#include "validate/rank_device.hpp"

namespace stepcast {

/// Whether parts of samples become whole ones somewhere in the network.
bool deals_samples(const NetworkSharing& sharing, const Model& model);

/// The way from parts of all samples of a group to whole samples of each rank, and of error signals back: an
/// all-to-all, whose piece (s, t) of the buffer goes from rank s to rank t. All of it in memory of the
/// backend.
class Dealing {
 public:
  Dealing(Network& network, const Model& model, const NetworkSharing& sharing, int place);

  /// What a rank does before the first phase and after the last. @param memory  of the backend
  void add_to(CollectiveWork& work, bool forward, float* memory);
  /// Median seconds of all copies of one way, after a step of the network: what is not in its messages.
  Seconds host_time(bool forward);

 private:
  /// Between part `device` of some samples and whole samples, both in row-major order.
  BoxMove scatter(int device) const;
  BoxMove gather(int device) const;

  float* piece(float* memory, int from, int to) const;
  void pack_parts(float* memory);
  void unpack_samples(float* memory);
  void pack_errors(float* memory);
  void unpack_errors(float* memory);

  Network& network_;
  Backend& backend_;
  SampleCut cut_;
  int place_, ways_, source_ = -1;
  std::int64_t samples_ = 0;          ///< of each rank
  Shape map_;                         ///< of one sample, before any flattening
  std::size_t whole_ = 0, part_ = 0;  ///< elements of each rank's samples, and of a part of them
  std::shared_ptr<float> parts_, samples_values_, room_;
};

}  // namespace stepcast
