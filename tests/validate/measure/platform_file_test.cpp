#include <catch2/catch.hpp>
#include <limits>

#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

TEST_CASE("on the written platform, messages between programs take their measured times",
          "[validate][links]") {
  MeasuredPlatform measured;
  measured.name = measured.source = "test";
  measured.cluster = read_cluster("memory", 2);
  measured.links = {{1e-6}, {5e9}, {{{std::numeric_limits<double>::infinity()}, {0}, 1}}};
  measured.links.one_way = 1.6;
  Results results;
  for (const auto& [bytes, seconds] : std::vector<std::pair<double, double>>{
           {256, 30e-6}, {65536, 60e-6}, {4194304, 1.2e-3}, {4194304, 1.2e-3}}) {
    Row row;
    row.set("what", std::string("program_message"));
    row.set("bytes", bytes);
    row.set("seconds", seconds);
    results.rows.push_back(row);
    measured.links.program_times.push_back({{bytes}, {seconds}});
  }
  CHECK(program_times(results).size() == measured.links.program_times.size());
  const YamlNode root = parse_yaml(platform_text(measured), "written.yaml");
  const Platform platform = read_platform(YamlValue(root, ""));
  for (const MessageTime& one : program_times(results)) {
    const MessageCost& cost = message_cost(platform.program_costs_in_node(), one.size);
    const double rate = cost.bandwidth_factor * measured.links.one_way * measured.links.bandwidth.value;
    const double seconds = measured.links.latency.value + cost.overhead.value + one.size.value / rate;
    CHECK(seconds == Approx(one.time.value).epsilon(5e-3));  // the latency is the whole time of 256 bytes
  }
}

}  // namespace stepcast
