#pragma once

#include <filesystem>
#include <iosfwd>
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

/// Writes a timeline as Chrome's trace-event JSON in the shape of PyTorch's profiles: a process
/// per rank; a thread for its host, with steps, waits and kernel launches; a thread per stream, with kernels
/// and copies. Dates are whole nanoseconds, written in microseconds with three decimals. The output is
/// streamed. If there are spans of one rank only, `distributedInfo` names it, as HTA needs.
/// Source: "Trace Event Format", Google, the JSON object format with `traceEvents`.
void write_chrome_trace(std::ostream& out, const Timeline& timeline);

/// The same to one file, packed if its name ends in `.gz`. @throws DiskFull; InputError `FILE: cannot write:
/// REASON`
void write_chrome_trace(const std::filesystem::path& file, const Timeline& timeline);

/// Removes the files of an earlier write_chrome_traces, and the folder if nothing else is in it.
void remove_chrome_traces(const std::filesystem::path& folder);

/// Writes every rank to `FOLDER/rank-N.json.gz`. @throws DiskFull; InputError `FILE: cannot write: REASON`
void write_chrome_traces(const std::filesystem::path& folder, const Timeline& timeline);

}  // namespace stepcast
