#include "report/plots/chrome_trace.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <system_error>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

/// Numbers start at 1, because viewers reserve 0, and are unique over all processes, because some viewers
/// distinguish threads by their number alone.
int process_number(std::size_t process) {
  return static_cast<int>(process) + 1;
}
std::size_t thread_number(const Timeline& timeline, std::size_t process, std::size_t track) {
  return process * timeline.tracks.size() + track + 1;
}

/// The metadata event that gives a process or a thread its name and order; `who` is its "pid", or its "pid"
/// and "tid".
std::string metadata(const std::string& who, const char* kind, const std::string& name, std::size_t rank) {
  return fmt::format(
      "{{\"ph\":\"M\",{0},\"name\":\"{1}_name\",\"args\":{{\"name\":{2}}}}},\n"
      "{{\"ph\":\"M\",{0},\"name\":\"{1}_sort_index\",\"args\":{{\"sort_index\":{3}}}}}",
      who, kind, json_text(name), rank);
}

void write_names(std::ostream& out, const Timeline& timeline) {
  for (std::size_t process = 0; process < timeline.processes.size(); ++process) {
    const auto pid = fmt::format("\"pid\":{}", process_number(process));
    out << (process ? ",\n" : "\n") << metadata(pid, "process", timeline.processes[process], process);
    for (std::size_t track = 0; track < timeline.tracks.size(); ++track) {
      const auto tid = fmt::format("{},\"tid\":{}", pid, thread_number(timeline, process, track));
      out << ",\n" << metadata(tid, "thread", timeline.tracks[track], track);
    }
  }
}

void check(const Span& span, const Timeline& timeline) {
  const bool known = span.process >= 0 &&
                     static_cast<std::size_t>(span.process) < timeline.processes.size() && span.track >= 0 &&
                     static_cast<std::size_t>(span.track) < timeline.tracks.size();
  if (!known)
    throw std::invalid_argument("write_chrome_trace: unknown process or track of span " + span.name);
  if (!(span.end >= span.start))
    throw std::invalid_argument("write_chrome_trace: negative span " + span.name);
}

}  // namespace

void write_chrome_trace(std::ostream& out, const Timeline& timeline) {
  out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  write_names(out, timeline);
  const char* separator = timeline.processes.empty() ? "\n" : ",\n";
  for (const Span& span : timeline.spans) {
    check(span, timeline);
    const auto process = static_cast<std::size_t>(span.process);
    const auto track = static_cast<std::size_t>(span.track);
    out << separator
        << fmt::format("{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"name\":{},\"cat\":{}}}",
                       process_number(process), thread_number(timeline, process, track),
                       shortest(span.start * 1e6), shortest((span.end - span.start) * 1e6),
                       json_text(span.name), json_text(span.category));
    separator = ",\n";
  }
  out << "\n]}\n";
}

void write_chrome_trace(const std::filesystem::path& file, const Timeline& timeline) {
  auto temporary = file;
  temporary += ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  write_chrome_trace(out, timeline);
  out.close();
  if (!out) {
    const int error = errno;
    std::filesystem::remove(temporary);
    const std::string line =
        fmt::format("{}: cannot write: {}", file.string(), std::generic_category().message(error));
    if (error == ENOSPC || error == EDQUOT) throw DiskFull(line);
    throw InputError(line);
  }
  replace_file(temporary, file);
}

}  // namespace stepcast
