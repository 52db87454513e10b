#include "validate/carry.hpp"

namespace stepcast {

void play_work(Transport& transport, const CollectiveWork& work,
               const std::vector<std::vector<Round>>& phases) {
  if (work.before) work.before(work.memory);
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (work.before_phase) work.before_phase(phase);
    play(transport, phases[phase], work.memory.data());
    if (work.after_phase) work.after_phase(phase);
  }
  if (work.after) work.after(work.memory);
}

}  // namespace stepcast
