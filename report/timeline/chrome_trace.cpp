#include "report/timeline/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/text.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"
#include "report/timeline/gzip_file.hpp"

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

namespace {

std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

/// Whole nanoseconds in the format's unit.
std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

/// The name of NCCL's kernel, with the algorithm if it is known, even an algorithm that NCCL does not have.
std::string kernel_name(const TimelineCollective& collective) {
  static const std::map<std::string, std::string> names{{"all_reduce", "AllReduce_Sum"},
                                                        {"reduce_scatter", "ReduceScatter_Sum"},
                                                        {"all_gather", "AllGather"},
                                                        {"broadcast", "Broadcast"},
                                                        {"reduce", "Reduce_Sum"}};
  const auto known = names.find(collective.kind);
  const std::string name = "ncclDevKernel_" + (known == names.end() ? "SendRecv" : known->second);
  std::string algorithm = collective.algorithm;
  std::ranges::transform(algorithm, algorithm.begin(), [](unsigned char c) { return std::toupper(c); });
  return algorithm.empty() ? name : name + "_" + algorithm;
}

using SpansByRank = std::map<int, std::vector<const Span*>>;

class Writer {
 public:
  /// @param spans  of the ranks to write
  Writer(std::ostream& out, const Timeline& timeline, const SpansByRank& spans)
      : out_(out), timeline_(timeline), spans_(spans) {}

  void write();

 private:
  struct Event {
    char phase;
    int stream;
    std::int64_t date;  ///< [ns]
    std::string rest;   ///< further members, each with a comma before it
  };

  void find_arrows();
  void write_rank(const TimelineRank& rank);
  void write_names(const TimelineRank& rank, const std::set<int>& streams);
  void metadata(int stream, const char* kind, const std::string& name, int order);
  void write_span(const PlacedSpan& placed);
  void write_host(const Span& span);
  void write_kernel(const PlacedSpan& placed, const std::string& name, const char* category,
                    const std::string& arguments);
  void write_arrow(const PlacedSpan& placed);
  void write_event(const Event& event);
  std::string collective_arguments(const Span& span);
  std::string message_arguments(const Span& span) const;
  int thread(int stream);
  std::pair<int, int> group_of(int communicator, int rank);

  std::ostream& out_;
  const Timeline& timeline_;
  const SpansByRank& spans_;
  std::set<std::int64_t> arrows_;               ///< messages with both ends in the file
  std::map<std::pair<int, int>, int> threads_;  ///< number by rank and stream, unique in the file
  std::map<std::pair<int, int>, int> groups_;   ///< by communicator and rank
  int rank_ = 0;
  std::int64_t launches_ = 0;
  const char* separator_ = "\n";
};

/// Numbers start at 1, because viewers reserve 0, and are unique over all processes, because some viewers
/// distinguish threads by their number alone.
int Writer::thread(int stream) {
  return threads_.try_emplace({rank_, stream}, threads_.size() + 1).first->second;
}

void Writer::write_event(const Event& event) {
  out_ << separator_
       << fmt::format("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}{}}}", event.phase, rank_ + 1,
                      thread(event.stream), microseconds(event.date), event.rest);
  separator_ = ",\n";
}

/// The metadata events that give the process (a negative stream) or one of its threads its name and place.
void Writer::metadata(int stream, const char* kind, const std::string& name, int order) {
  const std::string who = stream < 0 ? fmt::format("\"pid\":{}", rank_ + 1)
                                     : fmt::format("\"pid\":{},\"tid\":{}", rank_ + 1, thread(stream));
  out_ << separator_
       << fmt::format(
              "{{\"ph\":\"M\",{0},\"name\":\"{1}_name\",\"args\":{{\"name\":{2}}}}},\n"
              "{{\"ph\":\"M\",{0},\"name\":\"{1}_sort_index\",\"args\":{{\"sort_index\":{3}}}}}",
              who, kind, json_text(name), order);
  separator_ = ",\n";
}

void Writer::write_names(const TimelineRank& rank, const std::set<int>& streams) {
  metadata(-1, "process", rank.name, rank.rank);
  for (const int stream : streams) metadata(stream, "thread", stream_name(stream), stream);
}

void Writer::write_kernel(const PlacedSpan& placed, const std::string& name, const char* category,
                          const std::string& arguments) {
  const Span& span = *placed.span;
  const std::int64_t start = nanoseconds(span.start), duration = nanoseconds(span.end) - start;
  const bool copy = span.kind == Span::Kind::load;
  ++launches_;
  write_event(
      {'X', kHostStream, std::min(nanoseconds(span.issued), start),
       fmt::format(",\"dur\":0,\"name\":\"{}\",\"cat\":\"cuda_runtime\",\"args\":{{\"correlation\":{}}}",
                   copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", launches_)});
  write_event({'X', placed.stream, start,
               fmt::format(",\"dur\":{},\"name\":{},\"cat\":\"{}\",\"args\":{{\"device\":{},\"stream\":{},"
                           "\"correlation\":{}{}}}",
                           microseconds(duration), json_text(name), category, rank_, placed.stream, launches_,
                           arguments)});
}

void Writer::write_host(const Span& span) {
  const std::int64_t start = nanoseconds(span.start);
  const std::string arguments =
      span.kind == Span::Kind::step ? fmt::format(",\"args\":{{\"step\":{}}}", span.item) : "";
  write_event({'X', kHostStream, start,
               fmt::format(",\"dur\":{},\"name\":{},\"cat\":\"user_annotation\"{}",
                           microseconds(nanoseconds(span.end) - start), json_text(timeline_.names[span.name]),
                           arguments)});
}

/// The group of a rank in a communicator, and its number of ranks.
std::pair<int, int> Writer::group_of(int communicator, int rank) {
  const TimelineCommunicator& one = timeline_.communicators[communicator];
  const auto [known, is_new] = groups_.try_emplace({communicator, rank}, 0);
  if (is_new) {
    const auto place = std::ranges::find(one.ranks, rank) - one.ranks.begin();
    known->second = static_cast<int>(place) / one.group_size;
  }
  return {known->second, one.group_size};
}

/// The members that PyTorch's profiles have, and the algorithm and the bytes of a rank's buffer.
std::string Writer::collective_arguments(const Span& span) {
  const TimelineCollective& collective = timeline_.collectives[span.collective];
  const auto [group, size] = group_of(collective.communicator, span.rank);
  const auto& ranks = timeline_.communicators[collective.communicator].ranks;
  constexpr int kMostRanks = 32;
  std::string members;
  for (int i = 0; i < std::min(size, kMostRanks); ++i)
    members += fmt::format("{}{}", i ? ", " : "", ranks[group * size + i]);
  return fmt::format(
      ",\"Collective name\":\"{}\",\"algorithm\":\"{}\",\"bytes\":{},\"Group size\":{},"
      "\"Process Group Name\":\"communicator {} group {}\",\"Process Group Ranks\":\"[{}{}]\"",
      collective.kind, collective.algorithm, shortest(span.bytes), size, collective.communicator, group,
      members, size > kMostRanks ? ", ..." : "");
}

std::string Writer::message_arguments(const Span& span) const {
  const bool sends = span.kind == Span::Kind::send;
  return fmt::format(",\"Collective name\":\"{}\",\"bytes\":{},\"{} Rank\":{},\"message\":{}",
                     sends ? "send" : "recv", shortest(span.bytes), sends ? "Dst" : "Src", span.peer,
                     span.item);
}

/// One end of the arrow of a message. The viewer attaches it to the span that holds its date.
void Writer::write_arrow(const PlacedSpan& placed) {
  const Span& span = *placed.span;
  if (!arrows_.contains(span.item)) return;
  const bool sends = span.kind == Span::Kind::send;
  const std::int64_t start = nanoseconds(span.start), end = nanoseconds(span.end);
  write_event({sends ? 's' : 'f', placed.stream, sends ? start : std::max(start, end - 1),
               fmt::format(",\"id\":{},\"name\":\"message\",\"cat\":\"message\"{}", span.item,
                           sends ? "" : ",\"bp\":\"e\"")});
}

void Writer::write_span(const PlacedSpan& placed) {
  const Span& span = *placed.span;
  switch (span.kind) {
    case Span::Kind::compute:
      return write_kernel(placed, timeline_.names[span.name], "kernel", "");
    case Span::Kind::load:
      return write_kernel(placed, "Memcpy HtoD (input)", "gpu_memcpy",
                          fmt::format(",\"bytes\":{}", shortest(span.bytes)));
    case Span::Kind::collective:
      return write_kernel(placed, kernel_name(timeline_.collectives[span.collective]), "kernel",
                          collective_arguments(span));
    case Span::Kind::send:
    case Span::Kind::receive:
      write_kernel(placed, "ncclDevKernel_SendRecv", "kernel", message_arguments(span));
      return write_arrow(placed);
    default:
      return write_host(span);
  }
}

void Writer::write_rank(const TimelineRank& rank) {
  rank_ = rank.rank;
  const std::vector<PlacedSpan> placed = placed_spans(spans_.at(rank.rank));
  std::set<int> streams{kHostStream};
  for (const PlacedSpan& one : placed) streams.insert(one.stream);
  write_names(rank, streams);
  for (const PlacedSpan& one : placed) write_span(one);
}

void Writer::find_arrows() {
  std::set<std::int64_t> sent;
  for (const auto& [rank, spans] : spans_) {
    for (const Span* span : spans) {
      if (span->kind == Span::Kind::send) sent.insert(span->item);
    }
  }
  for (const auto& [rank, spans] : spans_) {
    for (const Span* span : spans) {
      if (span->kind == Span::Kind::receive && sent.contains(span->item)) arrows_.insert(span->item);
    }
  }
}

void Writer::write() {
  if (spans_.size() > 1) find_arrows();
  // Versions of Holistic Trace Analysis find the rank by a regular expression that wants a space behind ":".
  out_ << "{\"distributedInfo\": {\"backend\": \"stepcast\", ";
  if (spans_.size() == 1) out_ << fmt::format("\"rank\": {}, ", spans_.begin()->first);
  out_ << fmt::format("\"world_size\": {}}},\n\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [",
                      timeline_.run_ranks);
  for (const TimelineRank& rank : timeline_.ranks) {
    if (spans_.contains(rank.rank)) write_rank(rank);
  }
  out_ << "\n]}\n";
}

}  // namespace

void write_chrome_trace(std::ostream& out, const Timeline& timeline) {
  const SpansByRank spans = spans_by_rank(timeline);
  Writer(out, timeline, spans).write();
}

void write_chrome_trace(const std::filesystem::path& file, const Timeline& timeline) {
  write_file(file, [&](std::ostream& out) { write_chrome_trace(out, timeline); });
}

void remove_chrome_traces(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("rank-") && name.ends_with(".json.gz")) std::filesystem::remove(entry, ignored);
  }
  std::filesystem::remove(folder, ignored);  // fails if the folder has other files
}

void write_chrome_traces(const std::filesystem::path& folder, const Timeline& timeline) {
  remove_chrome_traces(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [rank, spans] : spans_by_rank(timeline)) {
    const SpansByRank own{{rank, spans}};
    write_file(folder / fmt::format("rank-{}.json.gz", rank),
               [&](std::ostream& out) { Writer(out, timeline, own).write(); });
  }
}

}  // namespace stepcast
