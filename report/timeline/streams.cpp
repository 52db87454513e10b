#include "report/timeline/streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace stepcast {
namespace {

// 7 is the number that PyTorch's profiles show for the default stream.
constexpr int kCompute = 7, kLoad = 8, kCollectives = 16, kSends = 1000, kReceives = 2000;

/// The first stream from `first` on that is free at the start of a span, which then occupies it.
int free_stream(std::map<int, double>& busy_until, int first, const Span& span) {
  int stream = first;
  for (auto used = busy_until.find(stream); used != busy_until.end() && used->second > span.start;
       used = busy_until.find(stream))
    ++stream;
  busy_until[stream] = span.end;
  return stream;
}

int stream_of(const Span& span, std::map<int, double>& busy_until) {
  switch (span.kind) {
    case Span::Kind::compute:
      return kCompute;
    case Span::Kind::load:
      return free_stream(busy_until, kLoad, span);
    case Span::Kind::collective:
      return kCollectives + span.stream;
    case Span::Kind::send:
      return free_stream(busy_until, kSends, span);
    case Span::Kind::receive:
      return free_stream(busy_until, kReceives, span);
    default:
      return kHostStream;
  }
}

}  // namespace

std::map<int, std::vector<const Span*>> spans_by_rank(const Timeline& timeline) {
  std::map<int, std::vector<const Span*>> spans;
  for (const Span& span : timeline.spans) spans[span.rank].push_back(&span);
  for (auto& [rank, own] : spans) {
    std::ranges::stable_sort(own, {}, [](const Span* span) {
      return std::tuple(span->start, -span->end, -static_cast<int>(span->kind));
    });
  }
  return spans;
}

std::vector<PlacedSpan> placed_spans(const std::vector<const Span*>& spans) {
  std::map<int, double> busy_until;  // by stream [s]
  std::vector<PlacedSpan> placed;
  for (const Span* span : spans) placed.push_back({span, stream_of(*span, busy_until)});
  return placed;
}

std::string stream_name(int stream) {
  if (stream == kHostStream) return "host";
  const char* what = stream == kCompute      ? "compute"
                     : stream < kCollectives ? "data loading"
                     : stream < kSends       ? "collectives"
                     : stream < kReceives    ? "sends"
                                             : "receives";
  return fmt::format("stream {}: {}", stream, what);
}

}  // namespace stepcast
