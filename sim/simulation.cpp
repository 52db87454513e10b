#include "sim/simulation.hpp"

#include "strategies/plan/run_conditions.hpp"

namespace stepcast {
namespace {

std::string suffix(Accuracy accuracy) {
  switch (accuracy) {
    case Accuracy::exact:
      return "";
    case Accuracy::close:
      return ", closely";
    case Accuracy::rough:
      return ", roughly";
  }
  return "";
}

}  // namespace

std::string to_text(const UsedFidelity& fidelity) {
  std::string text = fidelity_words().of(fidelity.fidelity);
  if (fidelity.sampled) text += ", sampled";
  if (fidelity.uses_bottleneck_sharing) text += ", shared";
  return text + suffix(fidelity.accuracy);
}

std::string to_text(const UsedFolding& folding) {
  return (folding.folds ? "folded" : "unfolded") + suffix(folding.accuracy);
}

}  // namespace stepcast
