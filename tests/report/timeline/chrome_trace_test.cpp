#include "report/timeline/chrome_trace.hpp"

#include <zlib.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;
using nlohmann::json;

namespace {

Span span(Span::Kind kind, int rank, double start, double end) {
  Span made;
  made.kind = kind;
  made.rank = rank;
  made.issued = made.start = start;
  made.end = end;
  return made;
}

/// Two ranks: a layer, an all-reduce and two messages that overlap, in one step.
Timeline one_step() {
  Timeline timeline;
  timeline.ranks = {{0, "worker 0"}, {1, "worker 1"}};
  timeline.run_ranks = 2;
  timeline.communicators = {{{0, 1}, 2}};
  timeline.collectives = {{"all_reduce", "ring", 4e6, 0}};
  Span layer = span(Span::Kind::compute, 0, 0, 0.0015);
  layer.name = timeline.name("conv1 \"forward\"");
  timeline.add(layer);
  Span step = span(Span::Kind::step, 0, 0, 0.004);
  step.name = timeline.name("ProfilerStep#0");
  timeline.add(step);
  for (int rank : {0, 1}) {
    Span sum = span(Span::Kind::collective, rank, 0.001, 0.002);
    sum.collective = 0;
    sum.bytes = 4e6;
    timeline.add(sum);
  }
  for (int number : {1, 2}) {
    Span message = span(Span::Kind::send, 0, 0.002, 0.003 + number * 1e-7);
    message.item = number;
    message.peer = 1;
    message.bytes = 8;
    timeline.add(message);
    message.kind = Span::Kind::receive;
    message.rank = 1;
    message.peer = 0;
    timeline.add(message);
  }
  return timeline;
}

json written(const Timeline& timeline) {
  std::ostringstream out;
  write_chrome_trace(out, timeline);
  return json::parse(out.str());
}

std::vector<json> events(const json& file, const std::string& phase, const std::string& name) {
  std::vector<json> found;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == phase && event["name"] == name) found.push_back(event);
  }
  return found;
}

std::string unpacked(const std::filesystem::path& file) {
  const gzFile packed = gzopen(file.c_str(), "rb");
  std::string text(100000, ' ');
  text.resize(gzread(packed, text.data(), 100000));
  gzclose(packed);
  return text;
}

}  // namespace

TEST_CASE("dates are whole nanoseconds, written in microseconds", "[report]") {
  std::ostringstream out;
  write_chrome_trace(out, one_step());
  CHECK(out.str().find("\"ts\":2000.000,\"dur\":1000.200,") != std::string::npos);
}

TEST_CASE("every member of a collective shows it, with group, algorithm, bytes and NCCL's name", "[report]") {
  const auto sums = events(written(one_step()), "X", "ncclDevKernel_AllReduce_Sum_RING");
  REQUIRE(sums.size() == 2);
  for (const json& sum : sums) {
    CHECK(sum["cat"] == "kernel");
    CHECK(sum["args"]["stream"] == 16);
    CHECK(sum["args"]["algorithm"] == "ring");
    CHECK(sum["args"]["bytes"] == 4000000);
    CHECK(sum["args"]["Process Group Ranks"] == "[0, 1]");
  }
  CHECK(sums[0]["pid"] != sums[1]["pid"]);
}

TEST_CASE("messages that overlap have threads of their own, and arrows between their ends", "[report]") {
  const json file = written(one_step());
  const auto messages = events(file, "X", "ncclDevKernel_SendRecv");
  REQUIRE(messages.size() == 4);
  std::set<int> threads;
  for (const json& message : messages) threads.insert(message["tid"].get<int>());
  CHECK(threads.size() == 4);
  for (const char* phase : {"s", "f"}) {
    const auto ends = events(file, phase, "message");
    REQUIRE(ends.size() == 2);
    CHECK(ends[0]["id"] != ends[1]["id"]);
  }
}

TEST_CASE("every kernel has a launch of the same correlation on its host", "[report]") {
  const json file = written(one_step());
  std::multiset<int> launched, ran;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] == "user_annotation") continue;
    (event["cat"] == "cuda_runtime" ? launched : ran).insert(event["args"]["correlation"].get<int>());
  }
  CHECK(launched == ran);
  CHECK(std::set(ran.begin(), ran.end()).size() == ran.size());
}

TEST_CASE("a folder has a packed file per rank, which names the rank, and no older ones", "[report]") {
  const TemporaryFolder folder;
  const auto traces = folder.path() / "timeline";
  std::filesystem::create_directories(traces);
  write_atomically(traces / "rank-7.json.gz", "old");
  write_chrome_traces(traces, one_step());
  CHECK(entries(traces) == 2);
  const json second = json::parse(unpacked(traces / "rank-1.json.gz"));
  CHECK(second["distributedInfo"]["rank"] == 1);
  CHECK(second["distributedInfo"]["world_size"] == 2);
  CHECK(events(second, "f", "message").empty());  // the other end is in another file
  remove_chrome_traces(traces);
  CHECK_FALSE(std::filesystem::exists(traces));
}

TEST_CASE("an empty timeline is a valid file", "[report]") {
  CHECK(written(Timeline{})["traceEvents"].empty());
}

TEST_CASE("a timeline file is complete or not there", "[report][errors]") {
  const TemporaryFolder folder;
  write_chrome_trace(folder.path() / "timeline.json", one_step());
  CHECK(json::parse(read_file(folder.path() / "timeline.json"))["traceEvents"].size() > 10);
  CHECK(entries(folder.path()) == 1);
  const auto missing = folder.path() / "no" / "timeline.json.gz";
  CHECK_THROWS_WITH(write_chrome_trace(missing, one_step()),
                    missing.string() + ": cannot write: No such file or directory");
}

TEST_CASE("a span that takes no time is not kept", "[report]") {
  Timeline timeline;
  timeline.add(span(Span::Kind::compute, 0, 1, 1));
  CHECK(timeline.spans.empty());
}
