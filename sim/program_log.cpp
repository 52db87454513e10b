#include "sim/program_log.hpp"

#include <algorithm>

namespace stepcast {

std::int64_t ProgramLog::last_on(Stream stream) const {
  const auto found = last_.find(stream);
  return found == last_.end() ? -1 : found->second;
}

std::int64_t ProgramLog::add(LoggedOperation operation, Stream stream) {
  const std::int64_t index = operations.size();
  operation.after = waited_;
  const std::int64_t before = last_on(stream);
  if (before >= 0) {
    const auto& earlier = operations[before].after;  // it waits for these already
    std::erase_if(operation.after,
                  [&](std::int64_t one) { return one == before || std::ranges::count(earlier, one) > 0; });
    operation.after.push_back(before);
  }
  if (stream != kNone) last_[stream] = index;
  operations.push_back(std::move(operation));
  return index;
}

void ProgramLog::waited_for(std::int64_t operation) {
  if (operation < 0) return;
  const auto& earlier = operations[operation].after;
  std::erase_if(waited_,
                [&](std::int64_t one) { return one == operation || std::ranges::count(earlier, one) > 0; });
  waited_.push_back(operation);
}

}  // namespace stepcast
