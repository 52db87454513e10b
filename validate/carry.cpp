#include "validate/carry.hpp"

namespace stepcast {
namespace {

/// Both for what a phase moves alone: the rest of the memory may be older on the host, or on the device.
void fetch_sent(const CollectiveWork& work, const std::vector<Round>& phase) {
  const DeviceMemory::Mark packed = work.phases_on->mark();
  work.phases_on->wait(packed);  // what came before may still be read where this phase's will be stored
  for (const Round& round : phase) {
    for (const Move& move : round) {
      if (move.way == Move::Way::send)
        work.phases_on->to_host(packed, work.on_device + move.slice.begin,
                                work.memory.data() + move.slice.begin,
                                static_cast<std::size_t>(move.slice.size()));
    }
  }
}

void store_received(const CollectiveWork& work, const std::vector<Round>& phase) {
  for (const Round& round : phase) {
    for (const Move& move : round) {
      if (move.way == Move::Way::receive)
        work.phases_on->to_device(work.memory.data() + move.slice.begin, work.on_device + move.slice.begin,
                                  static_cast<std::size_t>(move.slice.size()));
    }
  }
}

}  // namespace

void play_work(Transport& transport, const CollectiveWork& work,
               const std::vector<std::vector<Round>>& phases) {
  if (work.before) work.before(work.memory);
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (work.before_phase) work.before_phase(phase);
    if (work.phases_on != nullptr) fetch_sent(work, phases[phase]);
    play(transport, phases[phase], work.memory.data());
    if (work.phases_on != nullptr) store_received(work, phases[phase]);
    if (work.after_phase) work.after_phase(phase);
  }
  if (work.after) work.after(work.memory);
}

void carry_work(const Carry& carry, int index, const CollectiveWork& work,
                const std::vector<std::vector<Round>>& phases) {
  const auto elements = static_cast<std::int64_t>(work.memory.size());
  if (work.phases_on == nullptr) return carry({index, work.on_device, elements, work.ready, &phases});
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (work.before_phase) work.before_phase(phase);
    const std::vector<std::vector<Round>> one{phases[phase]};
    carry({index, work.on_device, elements, work.phases_on->mark(), &one});
    if (work.after_phase) work.after_phase(phase);
  }
}

}  // namespace stepcast
