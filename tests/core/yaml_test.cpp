#include "core/yaml.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"

using namespace stepcast;

TEST_CASE("every accessor says where, which key, what it expected and what it got", "[core][errors]") {
  const YamlNode root = parse_yaml(
      "count: 010\nrate: 1.5GB\nshare: .inf\nlink: fast\nlist: {a: 1}\nkind: rign\nflag: yes\nempty:\ntext: "
      "[1]\nbig: 9999999999999999999\nfar: 10Gbps\n",
      "f.yaml");
  const YamlMap map = YamlValue(root, "net").any_map();
  CHECK_THROWS_WITH(map.at("count").integer(1),
                    "f.yaml:1:8: net.count: expected an integer >= 1, got \"010\"");
  CHECK_THROWS_WITH(
      map.at("rate").bytes_per_second(),
      "f.yaml:2:7: net.rate: expected a value > 0 with its unit, such as \"25 GB/s\", got \"1.5GB\"");
  CHECK_THROWS_WITH(map.at("far").bytes_per_second(),
                    "f.yaml:11:6: net.far: expected a value > 0 with its unit, such as \"25 GB/s\", got "
                    "\"10Gbps\"; did you mean "
                    "\"10 Gbit/s\"?");
  CHECK_THROWS_WITH(map.at("share").number(0, 1),
                    "f.yaml:3:8: net.share: expected a number from 0 to 1, got \".inf\"");
  CHECK_THROWS_WITH(map.at("link").map({"bandwidth", "latency"}),
                    "f.yaml:4:7: net.link: expected a mapping with keys bandwidth, latency, got \"fast\"");
  CHECK_THROWS_WITH(map.at("list").list(), "f.yaml:5:7: net.list: expected a list, got a mapping");
  CHECK_THROWS_WITH(map.at("kind").one_of({"ring", "tree"}),
                    "f.yaml:6:7: net.kind: expected one of ring, tree, got \"rign\"; did you mean \"ring\"?");
  CHECK_THROWS_WITH(map.at("flag").boolean(),
                    "f.yaml:7:7: net.flag: expected true or false, got \"yes\"; did you mean true?");
  CHECK_THROWS_WITH(map.at("empty").text(), "f.yaml:8:1: net.empty: expected text, got nothing");
  CHECK_THROWS_WITH(map.at("text").text(), "f.yaml:9:7: net.text: expected text, got a list");
  CHECK_THROWS_WITH(map.at("big").integer(0),
                    "f.yaml:10:6: net.big: expected an integer >= 0, got \"9999999999999999999\"");
}

TEST_CASE("a number in another form than an integer's has the integer as advice", "[core][errors]") {
  const auto error_of = [](const std::string& text, std::int64_t high) {
    const YamlNode root = parse_yaml("a: " + text, "f.yaml");
    try {
      YamlValue(root, "").any_map().at("a").integer(1, high);
    } catch (const InputError& error) {
      const std::string what = error.what();
      const auto at = what.find("; ");
      return at == std::string::npos ? "" : what.substr(at);
    }
    return std::string("accepted");
  };
  CHECK(error_of("1_281_167", 10'000'000) == "; did you mean 1281167?");
  CHECK(error_of("1e3", 10'000) == "; did you mean 1000?");
  CHECK(error_of("8.0", 10) == "; did you mean 8?");
  CHECK(error_of("1.2M", 10'000'000) == "; did you mean 1200000?");
  CHECK(error_of("64k", 100'000) == "; did you mean 64000?");
  CHECK(error_of("1,000", 10'000) == "; did you mean 1000?");
  for (const char* none : {"1.5", "0", "many", "1e99", "1e3 x", "010", "M", "'8'"})
    CHECK(error_of(none, 100).empty());
  CHECK(error_of("1e3", 100).empty());  // out of range as well
}

TEST_CASE("quoted numbers are text, and the error says so", "[core][errors]") {
  const YamlNode root = parse_yaml("{a: \"8\", b: '0.5', c: \"true\"}", "f.yaml");
  const YamlMap map = YamlValue(root, "").any_map();
  CHECK_THROWS_WITH(map.at("a").integer(1),
                    "f.yaml:1:5: a: expected an integer >= 1 without quotes, got \"8\"");
  CHECK_THROWS_WITH(map.at("b").number(0, 1),
                    "f.yaml:1:13: b: expected a number from 0 to 1 without quotes, got \"0.5\"");
  CHECK_THROWS_WITH(map.at("c").boolean(),
                    "f.yaml:1:23: c: expected true or false without quotes, got \"true\"");
}

TEST_CASE("values beyond the valid range are refused, with the unit", "[core][errors]") {
  const YamlNode root = parse_yaml("a: 1e30 PB\nb: 1e-300 B/s\nc: 1e200 h\nd: 0.5 s\n", "f.yaml");
  const YamlMap map = YamlValue(root, "").any_map();
  CHECK_THROWS_WITH(map.at("a").bytes(), "f.yaml:1:4: a: expected a value up to 1e18 B, got \"1e30 PB\"");
  CHECK_THROWS_WITH(map.at("b").bytes_per_second(),
                    "f.yaml:2:4: b: expected a value from 1 B/s to 1e18 B/s, got \"1e-300 B/s\"");
  CHECK_THROWS_WITH(map.at("c").seconds(), "f.yaml:3:4: c: expected a value up to 1e12 s, got \"1e200 h\"");
  CHECK_THROWS_WITH(
      map.at("d").seconds(1),
      "f.yaml:4:4: d: expected a value >= 1 s with its unit, such as \"10 min\", got \"0.5 s\"");
  CHECK(map.at("d").seconds(0.25).value == 0.5);
}

TEST_CASE("unknown keys are refused with the nearest known key, missing keys with what they should be",
          "[core][errors]") {
  const YamlNode root = parse_yaml("link:\n  bandwith: 1 GB/s\n", "f.yaml");
  const YamlValue value(root, "");
  CHECK_THROWS_WITH(value.map({"link"}).at("link").map({"bandwidth", "latency"}),
                    "f.yaml:2:3: link.bandwith: unknown key; did you mean \"bandwidth\"? (expected one of: "
                    "bandwidth, latency)");
  CHECK_THROWS_WITH(value.any_map().at("nodes", "an integer >= 1"),
                    "f.yaml:1:1: nodes: missing (expected an integer >= 1)");
}

TEST_CASE("values are read in SI base units", "[core]") {
  const YamlNode root =
      parse_yaml("{t: 1.5 us, b: 4 MiB, r: 100 Gbit/s, f: 19.5 Tflop/s, w: 8 Gflop}", "f.yaml");
  const YamlMap map = YamlValue(root, "").any_map();
  CHECK(map.at("t").seconds().value == 1.5e-6);
  CHECK(map.at("b").bytes().value == 4.0 * 1024 * 1024);
  CHECK(map.at("r").bytes_per_second().value == 12.5e9);
  CHECK(map.at("f").flops_per_second().value == 19.5e12);
  CHECK(map.at("w").flops().value == 8e9);
}

TEST_CASE("an error message is one line, however long or strange the text is", "[core][errors]") {
  const YamlNode root = parse_yaml("a: \"x\\n\\a" + std::string(300, 'y') + "\"\n", "f.yaml");
  try {
    YamlValue(root, "").any_map().at("a").integer(0);
    FAIL("accepted");
  } catch (const InputError& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    CHECK(text.find('\a') == std::string::npos);
    CHECK(text.size() < 150);
  }
}
