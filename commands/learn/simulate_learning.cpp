#include "commands/learn/simulate_learning.hpp"

#include "forecast/simulate_point.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "sim/workers/simulate.hpp"

namespace stepcast {
namespace {

/// The network and arrays of one rank; the simulated clock decides when they compute.
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

  std::vector<Row> rows() { return learner_.evaluate(); }
  /// After `rows`: the parameters at the end.
  const Parameters& final_parameters() const { return learner_.final_parameters(); }

 private:
  Learner learner_;
  std::unique_ptr<RankDevice> device_;
};

}  // namespace

std::string unsupported_simulated_learning(const Experiment& experiment) {
  if (experiment.plan.sharing.form != NetworkSharing::Form::none)
    return "ranks with different parts of the network are supported in real runs only (stepcast validate)";
  const int ranks = static_cast<int>(experiment.plan.endpoints.size());
  const std::string why = unsupported_in_real_run(experiment.plan, ranks, false);
  return why.empty() ? unsupported_learning(experiment) : why;
}

Bytes learning_memory(const Experiment& experiment) {
  return static_cast<double>(experiment.plan.endpoints.size()) * experiment.plan.memory.total();
}

std::vector<Row> simulate_learning(const Experiment& experiment, std::int64_t batch,
                                   const std::filesystem::path& checkpoint) {
  set_kernel_threads(1);  // only one rank computes at a time, and other points use the other cores
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
  std::vector<Row> rows = ranks.front()->rows();
  if (!checkpoint.empty()) save_checkpoint(checkpoint, experiment.model, ranks.front()->final_parameters());
  return rows;
}

}  // namespace stepcast
