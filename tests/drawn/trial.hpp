#pragma once

#include <map>
#include <string>

#include "scenarios/experiment/experiment.hpp"
#include "sim/simulation.hpp"

namespace stepcast::drawn {

/// Messages and passes of a run from which on a trial is large: all its messages take longer than the small
/// budget of the rules of fidelity (sim/fidelity/), and laws of small trials are not checked.
constexpr double kLargeWork = 130e3;

/// How a scenario is simulated.
struct Form {
  Fidelity fidelity = Fidelity::automatic;
  Folding fold = Folding::automatic;
  LinkSharing sharing = LinkSharing::automatic;

  auto operator<=>(const Form&) const = default;
};

/// Options of `stepcast run` for a form.
std::string to_text(const Form& form);

/// What a law looks at.
struct Outcome {
  double step = 0;   ///< mean of all steps but the first; of the first if there is no other [s]
  double whole = 0;  ///< the run [s]
  SimulationResult result;
};

/// An experiment from the text of a scenario. @throws InputError
Experiment experiment_of(const YamlNode& scenario, Library& library);

Outcome simulated(const Simulation& simulation);

/// A drawn scenario and its simulations, each of which is made once.
class Trial {
 public:
  explicit Trial(YamlNode scenario);

  const YamlNode& scenario() const { return scenario_; }
  const Experiment& experiment() const { return experiment_; }
  const Outcome& outcome(const Form& form);
  /// The simulation, for a law that changes it.
  Simulation simulation(const Form& form) const;
  /// Messages and computed passes of a run in which each worker has its program and each message is
  /// simulated.
  double work() const { return work_; }
  Library& library() { return library_; }

 private:
  YamlNode scenario_;
  Library library_;
  Experiment experiment_;
  double work_ = 0;
  std::map<Form, Outcome> outcomes_;
};

}  // namespace stepcast::drawn
