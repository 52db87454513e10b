#include "commands/search_space/search_space.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "strategies/collectives/algorithm_choice.hpp"

using namespace stepcast;

namespace {

SearchKey key_of(const std::string& over) {
  return read_search_keys(over, Scenario{}).at(0);
}

void refused(const std::string& over, const std::string& message) {
  CHECK_THROWS_WITH(read_search_keys(over, Scenario{}), "--over " + message);
}

}  // namespace

TEST_CASE("ranges, whole ranges and words are read with their units", "[commands]") {
  const SearchKey bucket = key_of("strategy.bucket=1 MiB..100 MiB:log");
  CHECK(bucket.parameter.kind == Parameter::Kind::real);
  CHECK(bucket.parameter.logarithmic);
  CHECK(bucket.parameter.low == 1);
  CHECK(bucket.parameter.high == 100);
  CHECK(search_value(bucket, 12.3456789).value.text == "12.3457 MiB");

  const SearchKey smaller = key_of("strategy.bucket=512 KiB..4 MiB");
  CHECK(smaller.parameter.low == 0.5);
  CHECK(smaller.unit == " MiB");

  const SearchKey whole = key_of("workers=2..64");
  CHECK(whole.parameter.kind == Parameter::Kind::integer);
  CHECK(search_value(whole, 8).value.text == "8");
  CHECK(key_of("noise.sigma=0.0..1").parameter.kind == Parameter::Kind::real);

  CHECK(key_of("a=1..9223372036854775807").parameter.kind == Parameter::Kind::real);  // no whole double

  const SearchKey words = key_of("strategy.all_reduce=ring|automatic");
  CHECK(words.parameter.choices == std::vector<std::string>{"ring", "automatic"});
  CHECK(search_value(words, 1).value.text == "automatic");
}

TEST_CASE("keys stand in their order and name a setting", "[commands]") {
  const auto keys =
      read_search_keys("workers=1..8,strategy.bucket=1 MiB..4 MiB,placement=packed|spread", Scenario{});
  REQUIRE(keys.size() == 3);
  CHECK(search_name(keys, {4, 2.5, 1}) == "workers=4, strategy.bucket=2.5 MiB, placement=spread");
  CHECK(space_of(keys).size() == 3);
}

TEST_CASE("a setting has the options of its kind of strategy, and no others", "[commands]") {
  const auto keys = read_search_keys(
      "strategy.period=2..8, strategy.kind=synchronous|elastic_averaging, learning.learning_rate=0.1..1",
      Scenario{});
  CHECK(search_name(keys, {4, 0, 0.5}) == "strategy.kind=synchronous, learning.learning_rate=0.5");
  CHECK(search_name(keys, {4, 1, 0.5}) ==
        "strategy.period=4, strategy.kind=elastic_averaging, learning.learning_rate=0.5");
  CHECK_THROWS_WITH(
      read_search_keys("strategy.kind=synchronous|elastic_averaging, strategy.perod=2..8", Scenario{}),
      "--over strategy.perod: none of the strategies synchronous, elastic_averaging has this option");
  CHECK(!has_option("synchronous", "strategy.period"));
  CHECK(has_option("synchronous", "strategy.bucket"));
  CHECK(has_option("nothing like it", "strategy.period"));  // the scenario's reader refuses the kind
}

TEST_CASE("a key alone takes what the scenario sweeps, else what is usual", "[commands]") {
  Scenario scenario;
  for (const char* text : {"ring", "double_tree", "ring"}) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = text;
    scenario.points.push_back({text, {{"strategy.all_reduce", node}}});
  }
  CHECK(read_search_keys("strategy.all_reduce", scenario)[0].parameter.choices ==
        std::vector<std::string>{"ring", "double_tree"});
  CHECK(key_of("strategy.all_reduce").parameter.choices == algorithm_names());
  CHECK(key_of("strategy.bucket").unit == " MiB");
}

TEST_CASE("keys that cannot be searched are refused with the reason", "[commands][errors]") {
  refused("workers",
          "workers: give its values, such as workers=1..8, workers=\"1 us..50 us:log\" or workers=a|b");
  refused("workers=8", "workers: expected LOW..HIGH, LOW..HIGH:log or A|B|C, got \"8\"");
  refused("workers=a||b", "workers: expected LOW..HIGH, LOW..HIGH:log or A|B|C, got \"a||b\"");
  refused("workers=8..2", "workers: expected the lower end first, got \"8..2\"");
  refused("a=1 us..2 MB", "a: expected units of one kind at both ends, got \"1 us..2 MB\"");
  refused("a=1..2 MB", "a: expected units of one kind at both ends, got \"1..2 MB\"");
  refused("strategy.bukcet", "strategy.bukcet: there is no such key; did you mean \"strategy.bucket\"?");
  refused("a=0..2:log", "a: expected a lower end > 0 with :log, got \"0..2:log\"");
  refused("a=x..2",
          "a: expected LOW..HIGH or LOW..HIGH:log with two numbers, such as \"1 MiB..100 MiB:log\", got "
          "\"x..2\"");
  refused("a=1..2,a=3..4", "a: given twice");
  CHECK_THROWS_WITH(read_search_keys("a=1..2,", Scenario{}), "--over: expected KEY or KEY=VALUES, got \"\"");
}
