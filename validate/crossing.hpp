#pragma once

#include <memory>
#include <vector>

#include "kernels/network.hpp"

namespace stepcast {

/// What crosses one end of a run of layers, one source after the other.
struct Crossing {
  struct Place {
    int source = 0;
    std::size_t begin = 0, size = 0;  ///< in the message [floats]
  };
  std::vector<Place> places;
  std::size_t size = 0;

  const Place& of(int source) const;
};

/// Before `layer`, for a batch of so many samples.
Crossing crossing_at(const Model& model, int layer, std::int64_t batch);

/// What crosses the ends of a run of layers that a device computes whose memory the host cannot touch: from
/// tensors into a message there, and back, as work that it is given. What came in for a micro-batch is kept,
/// as some of it only passes through.
class DeviceCrossing {
 public:
  /// @param first  layer of the run
  DeviceCrossing(int first, Crossing before, Crossing after, std::size_t micro_batches)
      : first_(first), before_(std::move(before)), after_(std::move(after)), held_(micro_batches) {}

  /// Floats of a message to the next run, and of one to the one before.
  std::size_t values_size() const { return after_.size; }
  std::size_t errors_size() const { return before_.size; }

  /// @param network  of micro-batch `turn`
  void pack_values(Network& network, std::size_t turn, float* to);
  void pack_errors(Network& network, std::size_t turn, float* to);
  void unpack_values(Network& network, std::size_t turn, const float* from);
  void unpack_errors(Network& network, std::size_t turn, const float* from);

 private:
  struct Held {
    std::shared_ptr<float> values, errors;
  };

  bool is_own(const Crossing::Place& place) const { return place.source >= first_; }
  /// Memory that holds what came, with it inside.
  static float* keep(Network& network, std::shared_ptr<float>& memory, const float* from, std::size_t size);

  int first_;
  Crossing before_, after_;
  std::vector<Held> held_;
  std::shared_ptr<float> room_;  ///< for one error signal
};

}  // namespace stepcast
