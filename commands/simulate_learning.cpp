#include "commands/simulate_learning.hpp"

#include "commands/simulate_point.hpp"
#include "kernels/processor.hpp"
#include "validate/learner.hpp"
#include "validate/learning_runs.hpp"

namespace stepcast {
namespace {

/// A rank's network, driven by the simulated clock.
class LearningMemory : public WorkerMemory {
 public:
  LearningMemory(const Experiment& experiment, Backend& backend, Learner::Options options)
      : learner_(experiment, backend, std::move(options)), device_(learner_.device()) {
    device_->begin();
  }

  void compute(Work pass, LayerRange layers) override { device_->compute(pass, layers); }
  void calculate(const Arithmetic& run) override { device_->calculate(run); }
  std::span<float> memory(const Buffer& buffer) override { return device_->memory(buffer); }
  void step_ended(double seconds) override { learner_.step_ended(seconds); }

  std::vector<Row> rows() { return learner_.rows(); }

 private:
  Learner learner_;
  std::unique_ptr<RankDevice> device_;
};

}  // namespace

std::string why_not_simulated_learning(const Experiment& experiment) {
  if (experiment.plan.sharing.form != NetworkSharing::Form::none)
    return "its ranks have different parts of the network, which learn in real runs alone (stepcast "
           "validate)";
  const int ranks = static_cast<int>(experiment.plan.endpoints.size());
  const std::string why = why_not_for_real(experiment.plan, ranks, false);
  return why.empty() ? why_not_learned(experiment) : why;
}

Bytes learning_memory(const Experiment& experiment) {
  return static_cast<double>(experiment.plan.endpoints.size()) * experiment.plan.memory.total();
}

std::vector<Row> simulate_learning(const Experiment& experiment, std::int64_t batch) {
  set_kernel_threads(1);  // ranks take turns, and points run side by side
  const auto data = learning_data(experiment);
  const auto backend = make_onednn_backend();
  std::vector<std::unique_ptr<LearningMemory>> ranks;
  Simulation simulation = simulation_of(experiment, Doubled::none);
  simulation.fold = Folding::never;
  for (std::size_t rank = 0; rank < experiment.plan.endpoints.size(); ++rank) {
    ranks.push_back(std::make_unique<LearningMemory>(
        experiment, *backend, Learner::Options{static_cast<int>(rank), batch, data, [] {}}));
    simulation.memories.push_back(ranks.back().get());
  }
  simulate(simulation);
  return ranks.front()->rows();
}

}  // namespace stepcast
