#include <catch2/catch.hpp>

#include "commands/run/checked_points.hpp"
#include "commands/run/run_options.hpp"
#include "core/error.hpp"
#include "rows.hpp"

using namespace stepcast;

namespace {

using Lines = std::vector<std::string>;

const IneffectiveKey kChannels{"strategy.channels", "with all_reduce: double_tree"};
const std::string kNote = "strategy.channels: has no effect with all_reduce: double_tree";

/// Two points, which give `strategy.channels` or, for an empty text, do not.
Scenario with_channels(const std::string& first, const std::string& second) {
  Scenario scenario;
  scenario.points = {{"a", {}}, {"b", {}}};
  if (!first.empty()) scenario.points[0].values = {value_of("strategy.channels", first)};
  if (!second.empty()) scenario.points[1].values = {value_of("strategy.channels", second)};
  return scenario;
}

RunOptions shard(const std::string& text) {
  RunOptions options;
  options.shard_text = text;
  read_shard(options);
  return options;
}

}  // namespace

TEST_CASE("a key that is ineffective wherever it is given is noted once", "[commands]") {
  CHECK(ineffective_notes(with_channels("2", "4"), {{0, {kChannels}}, {1, {kChannels}}}) == Lines{kNote});
  CHECK(ineffective_notes(with_channels("2", ""), {{0, {kChannels}}, {1, {}}}) == Lines{kNote});
}

TEST_CASE("a key that has an effect at one of its points is not noted", "[commands]") {
  CHECK(ineffective_notes(with_channels("2", "4"), {{0, {kChannels}}, {1, {}}}).empty());
}

TEST_CASE("a key that a point gives inside a mapping is given", "[commands]") {
  Scenario scenario = with_channels("2", "");
  scenario.points[1].values = {parse_assignment("strategy={kind: synchronous, channels: 2}")};
  CHECK(ineffective_notes(scenario, {{0, {kChannels}}, {1, {}}}).empty());
}

TEST_CASE("a point of one device, which ignores most keys, does not decide which keys have an effect",
          "[commands]") {
  const IneffectiveAtPoint alone{.point = 1, .one_device = true};
  CHECK(ineffective_notes(with_channels("2", "4"), {{0, {kChannels}}, alone}) == Lines{kNote});
  CHECK(ineffective_notes(with_channels("2", "4"), {alone}).empty());
}

TEST_CASE("a shard is i/N with 0 <= i < N", "[commands]") {
  CHECK(shard("").shards == 1);
  CHECK(shard("2/5").shard == 2);
  CHECK(shard("2/5").shards == 5);
  for (const char* text : {"1", "5/5", "-1/5", "1/0", "a/b", "1/", "/3", "1/2/3", "0/1000001", "1 / 2"}) {
    CHECK_THROWS_AS(shard(text), InputError);
    CHECK_THROWS_WITH(shard(text),
                      std::string("--shard: expected i/N with 0 <= i < N, got \"") + text + "\"");
  }
}
