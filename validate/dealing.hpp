#pragma once

#include <span>
#include <vector>

#include "kernels/network.hpp"
#include "validate/rank_device.hpp"
#include "validate/sample_part.hpp"

namespace stepcast {

/// Whether parts of samples become whole ones somewhere in the network.
bool deals_samples(const NetworkSharing& sharing, const Model& model);

/// The way from parts of all samples of a group to whole samples of each rank, and of error signals back: an
/// all-to-all, whose piece (s, t) of the buffer goes from rank s to rank t.
class Dealing {
 public:
  Dealing(Network& network, const Model& model, const NetworkSharing& sharing, int place);

  CollectiveWork work(bool forward, std::span<float> memory);
  /// Median seconds of all copies of one way, after a step of the network: what is not in its messages.
  Seconds host_time(bool forward);

 private:
  /// Part `device` of some samples: to and from whole samples in row-major order.
  void scatter(int device, const float* part, float* whole) const;
  void gather(int device, const float* whole, float* part) const;

  float* piece(std::span<float> memory, int from, int to) const;
  void pack_parts(std::span<float> memory);
  void unpack_samples(std::span<float> memory);
  void pack_errors(std::span<float> memory);
  void unpack_errors(std::span<float> memory);

  Network& network_;
  SampleCut cut_;
  int place_, ways_, source_ = -1;
  std::int64_t samples_ = 0;                  ///< of each rank
  Shape map_;                                 ///< of one sample, before any flattening
  std::size_t whole_ = 0, part_ = 0;          ///< elements of each rank's samples, and of a part of them
  std::vector<std::vector<SampleRun>> runs_;  ///< of each rank's part
  std::vector<float> parts_, samples_values_;
};

}  // namespace stepcast
