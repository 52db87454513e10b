#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fake_links.hpp"
#include "kernels/network.hpp"
#include "strategies/strategy.hpp"
#include "strategies/synchronous.hpp"
#include "validate/transport.hpp"

namespace stepcast {

constexpr std::int64_t kBatch = 8;  ///< of one worker

/// Two dense layers and a softmax loss.
Model small_model();
Platform platform_for(int ranks);

/// Samples first, first + 1, ... of a fixed set, as many as the network's batch: the same whoever trains on
/// them.
void fill_data(Network& network, std::int64_t first);

/// All parameters in the model's order.
std::vector<float> parameters_of(Network& network);
void set_parameters(Network& network, const std::vector<float>& values);

/// The plan of `strategy: TEXT` for workers that train small_model.
/// @param batch  of a worker's step
Plan plan_of(const std::string& text, int workers, int servers, int steps, std::int64_t batch = kBatch);

struct TrainedOptions {
  std::function<void(Transport&, float*, std::int64_t)> library = {};  ///< sums of `all_reduce: mpi`
  std::int64_t again = 0;  ///< after so many mini-batches each worker's come again; 0: never
  std::function<std::unique_ptr<Backend>()> make = make_onednn_backend;  ///< what each rank computes on
  test::FakeLinks* links = nullptr;  ///< for messages between devices; null: all go by mail
};

/// Parameters of each rank after running the plan for real. Mini-batch t of worker w of W takes samples from
/// (t W + w) kBatch on.
std::vector<std::vector<float>> trained(const Plan& plan, const Optimizer& optimizer,
                                        const TrainedOptions& options = {});

/// Of one network that takes `steps` steps with a batch as large as that of all workers.
std::vector<float> trained_alone(std::int64_t batch, int steps, const Optimizer& optimizer);

}  // namespace stepcast
