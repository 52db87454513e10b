#pragma once

#include <catch2/catch.hpp>

#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "small_training.hpp"

namespace stepcast {

inline const Optimizer kMomentum{.learning_rate = 0.1, .momentum = 0.9};
inline const Optimizer kPlain{.learning_rate = 0.1, .momentum = 0};

using Floats = std::vector<float>;

inline void check_equal(const Floats& own, const Floats& other, double margin) {
  REQUIRE(own.size() == other.size());
  for (std::size_t i = 0; i < own.size(); ++i) CHECK(own[i] == Approx(other[i]).margin(margin));
}

/// A worker without a strategy program: a network whose mini-batches are those of worker `index` of `count`.
class HandWorker {
 public:
  HandWorker(int index, int count, const Optimizer& optimizer)
      : index_(index),
        count_(count),
        network_(*backend_, small_model(), {.batch = kBatch, .optimizer = optimizer}) {
    set_kernel_threads(1);
  }

  void step() {
    fill_data(network_, (mini_batch_++ * count_ + index_) * kBatch);
    network_.step();
  }
  Floats parameters() { return parameters_of(network_); }
  void set(const Floats& values) { set_parameters(network_, values); }
  Floats gradients() {
    Floats all;
    for (const std::size_t layer : {0u, 2u}) {
      for (std::size_t k = 0; k < 2; ++k) {
        const Floats one = network_.kernel(layer).read_gradient(k);
        all.insert(all.end(), one.begin(), one.end());
      }
    }
    return all;
  }

 private:
  std::int64_t index_, count_, mini_batch_ = 0;
  std::unique_ptr<Backend> backend_ = make_onednn_backend();
  Network network_;
};

}  // namespace stepcast
