#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fake_channels.hpp"
#include "kernels/network/network.hpp"
#include "kernels/onednn/backend.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/data_parallel/synchronous.hpp"
#include "strategies/registry.hpp"

namespace stepcast {

constexpr std::int64_t kBatch = 8;  ///< samples of one worker

/// Two dense layers and a softmax loss.
Model small_model();
Platform platform_for(int ranks);

/// Samples first, first + 1, ... of a fixed set, as many as the network's batch: the same for every rank.
void fill_data(Network& network, std::int64_t first);

/// All parameters in the model's order.
std::vector<float> parameters_of(Network& network);
void set_parameters(Network& network, const std::vector<float>& values);

/// The plan of `strategy: TEXT` for workers that train small_model.
/// @param batch  samples of a worker's step
Plan plan_of(const std::string& text, int workers, int servers, int steps, std::int64_t batch = kBatch);

struct TrainedOptions {
  std::function<void(Transport&, float*, std::int64_t)> library = {};  ///< sums of `all_reduce: mpi`
  std::int64_t again = 0;  ///< the mini-batches of each worker repeat after this many; 0: never
  std::function<std::unique_ptr<Backend>()> make = make_onednn_backend;  ///< makes the backend of a rank
  /// For payloads between devices; null: payloads travel with messages.
  test::FakeChannels* channels = nullptr;
  std::optional<AllReduceChoices> choices = {};  ///< of automatic all-reduces; default: without forecast
  std::function<void(RankId, double)> on_step_end = {};  ///< gets the time since the run's begin [s]
};

/// Parameters of each rank after running the plan for real. Mini-batch t of worker w of W takes samples from
/// (t W + w) kBatch on; mini-batch t that a program chooses, from t kBatch on.
std::vector<std::vector<float>> trained(const Plan& plan, const Optimizer& optimizer,
                                        const TrainedOptions& options = {});

/// Parameters of one network after `steps` steps with the batch of all workers together.
std::vector<float> trained_alone(std::int64_t batch, int steps, const Optimizer& optimizer);

}  // namespace stepcast
