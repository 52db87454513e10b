#include "validate/measure/link_benchmark.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <thread>

#include "../../runtime/ranks.hpp"
#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "strategies/collectives/schedule.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast::link_benchmark_test {
namespace {

LinkMeasurements reads(const std::vector<std::pair<double, double>>& times) {
  LinkMeasurements results;
  for (const auto& [bytes, seconds] : times) {
    LinkMeasurement& one = results.emplace_back(LinkMeasurement{LinkMeasurement::What::storage});
    one.bytes = bytes;
    one.seconds = seconds;
  }
  return results;
}

}  // namespace

TEST_CASE("the storage of measured reads is latency + bytes of all ranks / bandwidth", "[validate]") {
  const auto seconds = [](double bytes) { return 2e-4 + bytes / 500e6; };
  const LinkMeasurements results = reads({{4096, seconds(4096)}, {1e6, seconds(1e6)}, {16e6, seconds(16e6)}});
  const auto storage = measured_storage(results, 3);
  REQUIRE(storage);
  CHECK(storage->latency.value == Approx(2e-4));
  CHECK(storage->bandwidth.value == Approx(1500e6));
  CHECK_FALSE(measured_storage({}, 3));
}

TEST_CASE("compute beside loads is slower by the time that it loses while they last", "[validate]") {
  const auto load = [](double bytes) { return 2e-3 + bytes / 500e6; };
  LinkMeasurements results = reads({{4096, load(4096)}, {8e6, load(8e6)}});  // 4e6 bytes take 10 ms
  CHECK(load_slowdown(results) == 1);
  LinkMeasurement& beside = results.emplace_back(LinkMeasurement{LinkMeasurement::What::compute_beside_load});
  beside.bytes = 4e6;
  beside.seconds = 2e-3;
  CHECK(load_slowdown(results) == Approx(10.0 / 8));
  beside.seconds = -1e-3;  // noise: compute was not slower
  CHECK(load_slowdown(results) == 1);
}

namespace {

using Measure = std::function<LinkMeasurements(Transport&, PollingPolicy&)>;

/// Rows of two ranks.
LinkMeasurements measured(const Measure& measure) {
  LinkMeasurements rows;
  std::array<PollingPolicy, 2> polling;
  run_ranks("memory", 2, [&](Transport& transport, Transport&) {
    PollingPolicy& own = polling.at(transport.rank().index());
    auto own_rows = measure(transport, own);
    CHECK(own.pending_loads == 0);
    if (transport.is_rank_0()) rows = std::move(own_rows);
  });
  return rows;
}

std::function<void()> sleeping(double seconds) {
  return [=] { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
}

}  // namespace

TEST_CASE("ranks measure their loads at once, by rising size", "[validate]") {
  const LinkMeasurements rows = measured([](Transport& transport, PollingPolicy& polling) {
    return measure_storage(transport, polling, std::filesystem::temp_directory_path(), sleeping(1e-4));
  });
  REQUIRE(rows.size() == 5);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK((rows[i].what == LinkMeasurement::What::storage));
    CHECK(rows[i].seconds > 0);
    if (i > 0) CHECK(rows[i].bytes > rows[i - 1].bytes);
  }
}

TEST_CASE("ranks measure how much longer a computation takes beside a load that fits into it", "[validate]") {
  LinkMeasurements storage =
      reads({{4096, 1e-4}, {16 << 20, 20e-3}});  // loads of up to 12 MiB fit into 20 ms
  const LinkMeasurements rows = measured([&](Transport& transport, PollingPolicy& polling) {
    return measure_compute_beside_load(transport, polling, std::filesystem::temp_directory_path(),
                                       sleeping(0.02), storage);
  });
  REQUIRE(rows.size() == 1);
  CHECK((rows.back().what == LinkMeasurement::What::compute_beside_load));
  CHECK(rows.back().bytes >= 1 << 20);
  CHECK(rows.back().stolen_seconds.has_value());
  storage.push_back(rows.back());
  CHECK(load_slowdown(storage) >= 1);
}

TEST_CASE("the compute slowdown explains the time that was lost", "[validate]") {
  CHECK(compute_slowdown(0.1, 0.02, 0.1) == 1);           // all overlapped
  CHECK(compute_slowdown(0.1, 0.02, 0.11) == Approx(2));  // 20 ms at half speed: 10 ms late
  CHECK(compute_slowdown(0.1, 0.02, 0.12) == 100);        // nothing overlapped
  CHECK(compute_slowdown(0.1, 0.02, 0.3) == 100);
  CHECK(compute_slowdown(0.1, 0.02, 0.09) == 1);  // noise
}

TEST_CASE("beside a server's messages, compute loses three quarters of what it loses beside an all-reduce",
          "[validate]") {
  CHECK(message_slowdown(1) == 1);
  for (const double slowdown : {1.2, 2.0, 100.0})
    CHECK(1 - 1 / message_slowdown(slowdown) == Approx(0.75 * (1 - 1 / slowdown)));
}

TEST_CASE("disturbed repeats do not count, except the least disturbed ones if there are too few",
          "[validate]") {
  Repeats repeats;
  repeats.seconds = {5, 1, 9, 2, 3};
  repeats.stolen = {0.2, 0, 0.5, 0.04, 0.01};
  CHECK(undisturbed_seconds(repeats) == std::vector<double>{1, 3, 2});
  repeats.stolen = {0.2, 0, 0.5, 0.3, 0.4};
  CHECK(undisturbed_seconds(repeats) == std::vector<double>{1, 5, 2});
  CHECK(undisturbed_seconds({}).empty());
}

TEST_CASE("the hand-over time to the progress thread is read if it was measured", "[validate]") {
  LinkMeasurement one{LinkMeasurement::What::hand_over};
  one.seconds = 2e-5;
  CHECK(contention_of({one}).hand_over == 2e-5);
  CHECK(contention_of({}).hand_over == 0);
}

namespace {

std::vector<MessageTime> times_of(const std::function<double(double)>& seconds) {
  std::vector<MessageTime> times;
  for (double bytes = 4; bytes < 1e8; bytes *= 2) times.push_back({{bytes}, {seconds(bytes)}});
  return times;
}

}  // namespace

TEST_CASE("a table fitted to latency + size / bandwidth has this latency and bandwidth",
          "[validate][links]") {
  const auto times = times_of([](double bytes) { return 5e-6 + bytes / 2e9; });
  const LinkTable table = fitted_link_table(times);
  CHECK(table.latency.value == Approx(5e-6).epsilon(1e-3));  // the smallest size is 4 B, not 0
  CHECK(table.bandwidth.value == Approx(2e9).epsilon(1e-3));
  for (const double bytes : {4.0, 1000.0, 3e5, 7e7}) {
    CHECK(message_time(table, {bytes}).value == Approx(5e-6 + bytes / 2e9).epsilon(1e-3));
  }
}

TEST_CASE("a fitted table gives every measured time back, whatever the protocol", "[validate][links]") {
  const auto times = times_of([](double bytes) {
    if (bytes <= 8192) return 1e-6 + bytes / 1e9;          // eager
    if (bytes <= 262144) return 20e-6 + bytes / 5e9;       // rendezvous, in the cache
    return 20e-6 + 262144 / 5e9 + (bytes - 262144) / 3e9;  // beyond the cache: slower
  });
  const LinkTable table = fitted_link_table(times);
  for (std::size_t i = 1; i < times.size(); ++i) {  // the time of the smallest size is the latency
    CHECK(message_time(table, times[i].size).value == Approx(times[i].time.value).epsilon(1e-9));
  }
  for (const MessageCost& cost : table.costs) {  // limits of platform files
    CHECK(cost.overhead.value >= 0);
    CHECK(cost.bandwidth_factor > 0);
    CHECK(cost.bandwidth_factor <= 1);
  }
}

TEST_CASE("times that fall with size are raised, and repeated sizes count by their median",
          "[validate][links]") {
  const LinkTable table = fitted_link_table(
      {{{1000}, {3e-6}}, {{4}, {2e-6}}, {{2000}, {1e-6}}, {{4}, {9e-6}}, {{4}, {1e-6}}, {{1e6}, {4e-4}}});
  CHECK(table.latency.value == 2e-6);
  CHECK(message_time(table, {2000}).value == Approx(3e-6));
}

TEST_CASE("beyond the largest measured size times grow in proportion, whatever the noise of the last",
          "[validate][links]") {
  const LinkTable table = fitted_link_table({{{4}, {1e-6}}, {{1e6}, {1e-3}}, {{2e6}, {2.2e-3}}});
  CHECK(message_time(table, {8e6}).value == Approx(1e-6 + 4 * (2.2e-3 - 1e-6)));
}

TEST_CASE("a table needs two sizes and positive times", "[validate][links]") {
  CHECK_THROWS_WITH(fitted_link_table({{{8}, {1e-6}}}),
                    "a link table needs message times of at least two sizes");
  CHECK_THROWS_WITH(fitted_link_table({{{8}, {0}}, {{9}, {1}}}), "message times must be positive");
}

TEST_CASE("in shared memory the rate of an all-reduce inside a step holds up to messages of the whole array",
          "[validate][links]") {
  const auto ring = [](double bytes, double seconds, bool in_step) {
    LinkMeasurement one{LinkMeasurement::What::all_reduce, "ring"};
    one.bytes = bytes;
    one.seconds = seconds;
    one.in_step = in_step;
    return one;
  };
  // 1 GB/s in a row, 2 GB/s inside a step: messages of 4 MB on two ranks.
  const LinkMeasurements rows{ring(8, 2e-6, false), ring(4e6, 4e-3, false), ring(12e6, 12e-3, false),
                              ring(8e6, 4e-3, true), ring(32e6, 32e-3, false)};
  const LinkTable memory =
      fitted_link_table(message_times(rows, {.kind = Cluster::Kind::memory, .ranks = 2}));
  CHECK(message_time(memory, {2e6}).value == Approx(2e-3));
  CHECK(message_time(memory, {4e6}).value == Approx(2e-3));
  CHECK(message_time(memory, {6e6}).value == Approx(3e-3).epsilon(1e-3));
  CHECK(message_time(memory, {8e6}).value == Approx(4e-3));
  CHECK(message_time(memory, {16e6}).value == Approx(16e-3));
  const LinkTable sockets =
      fitted_link_table(message_times(rows, {.kind = Cluster::Kind::loopback, .ranks = 2}));
  CHECK(message_time(sockets, {6e6}).value == Approx(6e-3).epsilon(1e-3));
}

TEST_CASE("a schedule takes the time of its closed form over a table", "[validate][links]") {
  const LinkTable table = fitted_link_table(times_of([](double bytes) { return 5e-6 + bytes / 2e9; }));
  const double ring = schedule_time(ring_all_reduce({4, 1}), table, {4e6}).value;
  CHECK(ring == Approx(6 * (5e-6 + 1e6 / 2e9)).epsilon(1e-3));
  const double doubling = schedule_time(recursive_doubling_all_reduce({8, 1}), table, {4e6}).value;
  CHECK(doubling == Approx(3 * (5e-6 + 4e6 / 2e9)).epsilon(1e-3));
}

TEST_CASE("on the written platform, messages between programs take their measured times",
          "[validate][links]") {
  MeasuredPlatform measured;
  measured.name = measured.source = "test";
  measured.cluster = read_cluster("memory", 2);
  measured.links = {{1e-6}, {5e9}, {{{std::numeric_limits<double>::infinity()}, {0}, 1}}};
  measured.links.one_way = 1.6;
  LinkMeasurements links;
  for (const auto& [bytes, seconds] : std::vector<std::pair<double, double>>{
           {256, 30e-6}, {65536, 60e-6}, {4194304, 1.2e-3}, {4194304, 1.2e-3}}) {
    LinkMeasurement& one = links.emplace_back(LinkMeasurement{LinkMeasurement::What::program_message});
    one.bytes = bytes;
    one.seconds = seconds;
    measured.links.program_times.push_back({{bytes}, {seconds}});
  }
  CHECK(program_times(links).size() == measured.links.program_times.size());
  const YamlNode root = parse_yaml(platform_text(measured), "written.yaml");
  const Platform platform = read_platform(YamlValue(root, ""), {});
  for (const MessageTime& one : program_times(links)) {
    const MessageCost& cost = message_cost(platform.program_costs_in_node(), one.size);
    const double rate = cost.bandwidth_factor * measured.links.one_way * measured.links.bandwidth.value;
    const double seconds = measured.links.latency.value + cost.overhead.value + one.size.value / rate;
    CHECK(seconds == Approx(one.time.value).epsilon(5e-3));  // the latency is the whole time of 256 bytes
  }
}

TEST_CASE("a measured link is written and read back, and a bad line is an error with its place",
          "[validate][links][errors]") {
  LinkMeasurement one{LinkMeasurement::What::all_reduce, "ring"};
  one.bytes = 1024;
  one.seconds = 1e-4;
  one.low = 9e-5;
  one.repeats = 7;
  one.in_step = true;
  one.ranks = 4;
  const LinkMeasurements read = read_link_measurements(to_json_line(one) + "\n", "links.jsonl");
  REQUIRE(read.size() == 1);
  CHECK(to_row(read.front()).cells == to_row(one).cells);
  CHECK(first_of(read, LinkMeasurement::What::storage) == nullptr);

  const auto second = [&](const std::string& line) {
    return [text = to_json_line(one) + "\n" + line + "\n"] { read_link_measurements(text, "links.jsonl"); };
  };
  CHECK_THROWS_WITH(second(R"({"what":"all_reduce","algorithm":"ring","seconds":1e-4})")(),
                    "links.jsonl:2:1: bytes: expected a number, got nothing");
  CHECK_THROWS_WITH(second(R"({"what":"all_reduce","bytes":8,"seconds":"fast"})")(),
                    "links.jsonl:2:1: seconds: expected a number, got \"fast\"");
  CHECK_THROWS_WITH(second(R"({"what":"gossip","bytes":8,"seconds":1})")(),
                    Catch::StartsWith("links.jsonl:2:1: what: expected one of half_round_trip, pairs"));
}
}  // namespace stepcast::link_benchmark_test
