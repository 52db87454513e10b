#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/timeline.hpp"

namespace stepcast {

/// Stream of the host's thread: CUDA's streams have positive numbers.
constexpr int kHostStream = 0;

/// A span and the stream of its rank on which it is shown.
struct PlacedSpan {
  const Span* span = nullptr;
  int stream = kHostStream;
};

/// The spans of each rank, by start; of several that start together, the longest first.
std::map<int, std::vector<const Span*>> spans_by_rank(const Timeline& timeline);

/// The spans of one rank on its streams, in the same order. No two spans of a stream overlap, except on the
/// host, where they nest: messages that overlap get streams of their own.
std::vector<PlacedSpan> placed_spans(const std::vector<const Span*>& spans);

/// "host", "stream 7: compute", "stream 16: collectives"
std::string stream_name(int stream);

}  // namespace stepcast
