#include "validate/measure/link_results.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

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
  const Platform platform = read_platform(YamlValue(root, ""));
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

}  // namespace stepcast
