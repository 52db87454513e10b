#include "report/plots/chrome_trace.hpp"

#include <catch2/catch.hpp>
#include <sstream>
#include <stdexcept>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

Timeline one_step() {
  return {.spans = {{"conv1 \"forward\"", "compute", 0, 0, 0, 0.0015},
                    {"all-reduce", "communication", 0, 1, 0.001, 0.002}},
          .processes = {"worker 0"},
          .tracks = {"compute", "communication"}};
}

}  // namespace

TEST_CASE("a timeline becomes complete events in microseconds, with names for processes and threads",
          "[report]") {
  std::ostringstream out;
  write_chrome_trace(out, one_step());
  CHECK(out.str() ==
        "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"worker 0\"}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":0}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"compute\"}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":0}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"communication\"}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":1}},\n"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1500,\"name\":\"conv1 "
        "\\\"forward\\\"\",\"cat\":\"compute\"},\n"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":1000,\"dur\":1000,\"name\":\"all-reduce\",\"cat\":"
        "\"communication\"}\n"
        "]}\n");
}

TEST_CASE("an empty timeline is a valid file", "[report]") {
  std::ostringstream out;
  write_chrome_trace(out, Timeline{});
  CHECK(out.str() == "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n]}\n");
}

TEST_CASE("a timeline file is complete or not there", "[report][errors]") {
  const TemporaryFolder folder;
  write_chrome_trace(folder.path() / "timeline.json", one_step());
  CHECK(read_file(folder.path() / "timeline.json").size() > 500);
  CHECK(entries(folder.path()) == 1);
  const auto missing = folder.path() / "no" / "timeline.json";
  CHECK_THROWS_WITH(write_chrome_trace(missing, one_step()),
                    missing.string() + ": cannot write: No such file or directory");
}

TEST_CASE("a span without a place on the timeline is the caller's fault", "[report][errors]") {
  std::ostringstream out;
  auto timeline = one_step();
  timeline.spans[0].track = 2;
  CHECK_THROWS_AS(write_chrome_trace(out, timeline), std::invalid_argument);
  timeline = one_step();
  timeline.spans[0].end = -1;
  CHECK_THROWS_AS(write_chrome_trace(out, timeline), std::invalid_argument);
}
