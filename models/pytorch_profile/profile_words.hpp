#pragma once

#include <string>
#include <string_view>

namespace stepcast {

/// The keys of a profile that are read.
enum class ProfileKey {
  other,
  trace_events,
  device_properties,
  nccl_of_run,
  runtime_version,
  driver_version,
  phase,
  category,
  name,
  process,
  thread,
  start,
  duration,
  arguments,
  external_id,
  correlation,
  sequence,
  forward_thread,
  device,
  shapes,
  nccl_version,
  groups,
  group_name,
  group_size,
};

/// `other` for a key that is not read.
ProfileKey key_of(std::string_view text);

/// The kind of an event. Versions of PyTorch name categories differently.
enum class EventCategory { other, missing, host_operator, annotation, kernel, copy, fill, launch };

/// The category of an event by its word in the file, in any case of letters.
EventCategory category_of(std::string text);

}  // namespace stepcast
