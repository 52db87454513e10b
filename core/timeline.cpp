#include "core/timeline.hpp"

#include "core/error.hpp"

namespace stepcast {

int Timeline::name(const std::string& text) {
  const auto [known, is_new] = numbers_.try_emplace(text, static_cast<int>(names.size()));
  if (is_new) names.push_back(text);
  return known->second;
}

void Timeline::add(const Span& span) {
  constexpr std::size_t kMostSpans = 20'000'000;  // about 1.6 GB
  if (span.end <= span.start) return;
  if (spans.size() == kMostSpans)
    throw LimitError("the timeline has more than 20 million spans; choose fewer ranks or steps");
  spans.push_back(span);
}

}  // namespace stepcast
