#pragma once

#include <filesystem>
#include <iosfwd>

#include "core/timeline.hpp"

namespace stepcast {

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
