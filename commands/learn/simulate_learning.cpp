#include "commands/learn/simulate_learning.hpp"

#include <algorithm>
#include <optional>

#include "forecast/simulate_point.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "runtime/learning/in_process_collectives.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "sim/workers/simulate.hpp"
#include "strategies/plan/communicator.hpp"

namespace stepcast {
namespace {

constexpr bool kMayCompress = true;  // costs one look at the parameters

/// State that all ranks of a simulation that learns share.
struct LearningRanks {
  const Plan& plan;
  InProcessQueues queues;  ///< of parameters that are gathered for evaluation
  std::optional<InProcessCollectives> collectives;
};

/// The network and arrays of one rank; the simulated clock decides when they compute.
class LearningMemory : public WorkerMemory {
 public:
  LearningMemory(const Experiment& experiment, Backend& backend, LearningRanks& ranks,
                 Learner::Options options)
      : rank_(options.rank),
        ranks_(ranks),
        transport_(ranks.queues, rank_.value, static_cast<int>(ranks.plan.endpoints.size())),
        learner_(experiment, backend, with_transport(std::move(options), transport_)),
        device_(learner_.device()) {
    device_->begin();
  }

  void begin(const AllReduceChoices& choices) override {
    if (!ranks_.collectives) ranks_.collectives.emplace(ranks_.plan, choices);
  }
  void compute(Work pass, LayerRange layers) override { device_->compute(pass, layers); }
  void calculate(const Arithmetic& run) override { device_->calculate(run); }

  std::function<void()> start_collective(CollectiveId id, std::size_t call) override {
    CollectiveBinding binding = device_->bind_collective(ranks_.plan.collectives[id.index()]);
    std::function<void()> on_waited = std::move(binding.on_waited);
    ranks_.collectives->join(id, call, rank_, std::move(binding));
    return on_waited;
  }
  std::span<float> send_buffer(const Message& message) override { return device_->send_buffer(message); }
  void receive(const Message& message, std::span<const float> values) override {
    std::ranges::copy(values, device_->receive_buffer(message).begin());
    device_->on_received(message);
  }
  void step_ended(double seconds) override {
    device_->begin_step(++steps_);
    learner_.step_ended(seconds);
  }

  /// Rows of loss and accuracy on rank 0. Every other rank that holds evaluated parameters must have been
  /// asked before, because it then sends them to rank 0.
  std::vector<Row> rows() {
    return learner_.holds_evaluated_parameters() ? learner_.evaluate() : std::vector<Row>();
  }
  /// After `rows`: the parameters at the end.
  const Parameters& final_parameters() const { return learner_.final_parameters(); }

 private:
  static Learner::Options with_transport(Learner::Options options, Transport& transport) {
    options.transport = &transport;
    return options;
  }

  RankId rank_;
  int steps_ = 0;
  LearningRanks& ranks_;
  InProcessTransport transport_;
  Learner learner_;
  std::unique_ptr<RankDevice> device_;
};

}  // namespace

std::string unsupported_simulated_learning(const Experiment& experiment) {
  const int ranks = static_cast<int>(experiment.plan.endpoints.size());
  const std::string why = unsupported_in_real_run(experiment.plan, ranks, false);
  return why.empty() ? unsupported_learning(experiment) : why;
}

Bytes learning_memory(const Experiment& experiment) {
  return static_cast<double>(experiment.plan.endpoints.size()) * experiment.plan.memory.total();
}

SimulatedLearning simulate_learning(const Experiment& experiment, std::int64_t batch,
                                    const std::filesystem::path& checkpoint) {
  set_kernel_threads(1);  // only one rank computes at a time, and other points use the other cores
  const auto data = learning_data(experiment);
  const auto backend = make_onednn_backend();
  LearningRanks shared{experiment.plan, {}, {}};
  std::vector<std::unique_ptr<LearningMemory>> ranks;
  Simulation simulation = simulation_of(experiment, Doubled::none);
  simulation.fold = Folding::never;
  for (const RankId rank : first_ranks(static_cast<int>(experiment.plan.endpoints.size()))) {
    ranks.push_back(std::make_unique<LearningMemory>(
        experiment, *backend, shared, Learner::Options{rank, batch, data, [] {}, kMayCompress}));
    simulation.memories.push_back(ranks.back().get());
  }
  SimulatedLearning learned;
  learned.seconds = simulate(simulation).seconds;
  for (std::size_t rank = ranks.size(); rank-- > 1;) ranks[rank]->rows();
  learned.rows = ranks.front()->rows();
  if (!checkpoint.empty()) save_checkpoint(checkpoint, experiment.model, ranks.front()->final_parameters());
  return learned;
}

}  // namespace stepcast
