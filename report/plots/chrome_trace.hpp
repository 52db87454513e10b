#pragma once

#include <filesystem>
#include <iosfwd>

#include "core/timeline.hpp"

namespace stepcast {

/// Writes a timeline as Chrome's trace-event JSON for ui.perfetto.dev: a process per worker, a thread per
/// track and a complete event ("X") per span, in microseconds. The output is streamed, so memory does not
/// grow with the number of spans. Source: "Trace Event Format", Google, the JSON object format with
/// `traceEvents`.
/// @throws std::invalid_argument for a span that ends before it starts or names an unknown process or track
void write_chrome_trace(std::ostream& out, const Timeline& timeline);

/// Writes a timeline to a file, through a temporary file beside it. @throws InputError `FILE: cannot write:
/// REASON`
void write_chrome_trace(const std::filesystem::path& file, const Timeline& timeline);

}  // namespace stepcast
