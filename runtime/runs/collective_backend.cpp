#include "runtime/runs/collective_backend.hpp"

namespace stepcast {
namespace {

/// Copies only what the phase sends: the rest of the memory may be older on the device or on the host.
void copy_sends_to_host(const CollectiveBinding& work, const std::vector<Round>& phase) {
  const DeviceMemory::Mark packed = work.staging_device->mark();
  work.staging_device->wait(packed);  // kernels may still read what the previous phase received
  for (const Round& round : phase) {
    for (const Transfer& transfer : round) {
      if (transfer.way == Transfer::Way::send)
        work.staging_device->to_host(packed, work.on_device + transfer.slice.begin,
                                     work.memory.data() + transfer.slice.begin,
                                     static_cast<std::size_t>(transfer.slice.size()));
    }
  }
}

void copy_receives_to_device(const CollectiveBinding& work, const std::vector<Round>& phase) {
  for (const Round& round : phase) {
    for (const Transfer& transfer : round) {
      if (transfer.way == Transfer::Way::receive)
        work.staging_device->to_device(work.memory.data() + transfer.slice.begin,
                                       work.on_device + transfer.slice.begin,
                                       static_cast<std::size_t>(transfer.slice.size()));
    }
  }
}

}  // namespace

void execute_on_transport(Transport& transport, const CollectiveBinding& work,
                          const std::vector<std::vector<Round>>& phases) {
  if (work.fetch) work.fetch(work.memory);
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (work.before_phase) work.before_phase(phase);
    if (work.staging_device != nullptr) copy_sends_to_host(work, phases[phase]);
    execute_rounds(transport, phases[phase], work.memory.data());
    if (work.staging_device != nullptr) copy_receives_to_device(work, phases[phase]);
    if (work.after_phase) work.after_phase(phase);
  }
  if (work.store) work.store(work.memory);
}

void run_on_backend(const CollectiveBackend& backend, int index, const CollectiveBinding& work,
                    const std::vector<std::vector<Round>>& phases) {
  const auto elements = static_cast<std::int64_t>(work.memory.size());
  if (work.staging_device == nullptr) return backend({index, work.on_device, elements, work.ready, &phases});
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (work.before_phase) work.before_phase(phase);
    const std::vector<std::vector<Round>> one{phases[phase]};
    backend({index, work.on_device, elements, work.staging_device->mark(), &one});
    if (work.after_phase) work.after_phase(phase);
  }
}

}  // namespace stepcast
