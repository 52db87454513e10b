#include "core/yaml.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "core/error.hpp"

namespace stepcast::yaml_test {
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

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_yaml(text, "f.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string alias_bomb() {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int k = 0; k < 8; ++k) text += ", " + last;
    text += "]\n";
  }
  return text;
}

}  // namespace

TEST_CASE("read_yaml refuses input that yaml-cpp accepts, and names its place", "[core][errors]") {
  struct Case {
    std::string text, message;
  };
  const auto c = GENERATE(values<Case>({
      {"a: &a [1,*a]", "f.yaml:1:10: alias to a mapping or list that contains it"},
      {"a: 1\na: 2\n", "f.yaml:2:1: a: given twice"},
      {"base: &b {x: 1}\nc:\n  <<: *b\n",
       "f.yaml:3:3: merge keys (<<) are not supported: write the keys out"},
      {"- a\n-b\n", "f.yaml:2:1: text after the end of the document (one document a file)"},
      {"a: 1\n---\nb: 2\n", "f.yaml:3:1: text after the end of the document (one document a file)"},
      {"a: \"xxx\n", "f.yaml:1:8: invalid YAML: illegal EOF in scalar"},
      {"a: !!int 3\n", "f.yaml:1:4: tags are not used here: remove \"tag:yaml.org,2002:int\""},
      {"? [1, 2]\n: 3\n", "f.yaml:1:3: a key must be plain text"},
      {"a: b\x01 c\n", "f.yaml:1:5: control character"},
      {"a: \xC0\xAF\n", "f.yaml:1:4: not valid UTF-8 text"},
      {"", "f.yaml: the file is empty"},
      {"a:\n  b: 1\n   c: 2\n",
       "f.yaml:3:5: invalid YAML: illegal map value; indent a key like those beside it, and put a text with "
       "\": \" in "
       "quotes"},
      {"a: b: c\n",
       "f.yaml:1:5: invalid YAML: illegal map value; indent a key like those beside it, and put a text with "
       "\": \" in "
       "quotes"},
      {"a:\n\tb: 1\n", "f.yaml:2:3: invalid YAML: illegal map value; indent with spaces, not with tabs"},
      {"a: [1, 2\n", "f.yaml:1:1: invalid YAML: end of sequence flow not found"},
  }));
  CHECK(refusal(c.text) == c.message);
}

TEST_CASE("read_yaml refuses NUL bytes, UTF-16 and a leading comma", "[core][errors]") {
  CHECK(refusal(std::string("a: b\0c\n", 7)) == "f.yaml:1:5: control character");
  CHECK(refusal(std::string("\xFF\xFE"
                            "a\0",
                            4)) == "f.yaml:1:1: not valid UTF-8 text");
  CHECK(refusal(",\n") != "accepted");
}

TEST_CASE("read_yaml limits nodes after expansion, depth, scalar size and file size", "[core][errors]") {
  CHECK(refusal(alias_bomb()).find("more than 200000 values after expanding aliases") != std::string::npos);
  CHECK(refusal(std::string(65, '[') + std::string(65, ']')) == "f.yaml:1:65: nested deeper than 64 levels");
  CHECK(refusal(std::string(64, '[') + std::string(64, ']')) == "accepted");
  CHECK(refusal("a: " + std::string(70'000, 'x')) == "f.yaml:1:4: text longer than 64 KiB");
  CHECK(refusal(std::string((1 << 20) + 1, 'x')) == "f.yaml: file of 1048577 bytes, at most 1 MiB is read");
  CHECK(refusal(std::string(5000, '[')) != "accepted");
}

TEST_CASE("a duplicate key is found even in the largest mapping", "[core][errors]") {
  std::string text;
  for (int i = 0; i < 90'000; ++i) text += "k" + std::to_string(i) + ":\n";
  CHECK(refusal(text) == "accepted");
  CHECK(refusal(text + "k7:\n") == "f.yaml:90001:1: k7: given twice");
}

TEST_CASE("nested anchors count as often as they are stored", "[core][errors]") {
  std::string text, values;
  for (int i = 0; i < 5000; ++i) values += "x, ";
  for (int level = 0; level < 60; ++level) text += "&a" + std::to_string(level) + " [";
  CHECK(
      refusal(text + values + std::string(60, ']')).find("more than 200000 values after expanding aliases") !=
      std::string::npos);
}

TEST_CASE("aliases are expanded, and an empty value has the place of its key", "[core]") {
  const YamlNode root = parse_yaml("a: &x {k: 1}\nb: *x\nc:\nd: 2\n", "f.yaml");
  REQUIRE(root.find("b") != nullptr);
  CHECK(root.find("b")->find("k")->text == "1");
  CHECK(root.find("b")->place.line == 2);
  CHECK(root.find("c")->kind == YamlNode::Kind::nothing);
  CHECK(root.find("c")->place.line == 3);
}

TEST_CASE("a missing file and a folder are refused by name", "[core][errors]") {
  CHECK_THROWS_WITH(read_yaml("no-such-file.yaml"),
                    "no-such-file.yaml: cannot be read: No such file or directory");
  CHECK_THROWS_WITH(read_yaml("/"), "/: is a folder, not a file");
}

TEST_CASE("a quoted text is read back as it was", "[core]") {
  for (const std::string text : {"a \"b\" \\ c", "null", "12", "# {a: b}", "line\n\ttab", "\u00e4 \u20ac"}) {
    const YamlNode node = parse_yaml("key: " + yaml_quoted(text), "test.yaml");
    CHECK(YamlValue(node, "").any_map().at("key").text() == text);
  }
  CHECK(yaml_quoted("\x01 \x7f") == "\"\\x01 \\x7f\"");
  CHECK(yaml_quoted("v7.\xE5s \xE2\x82\xAC") ==
        "\"v7.\uFFFDs \u20AC\"");  // bytes that are no text are replaced
}

TEST_CASE("numbers are a list with six significant digits", "[core]") {
  CHECK(yaml_numbers({1.5, 2e-6, 1.0 / 3}) == "[1.5, 2e-06, 0.333333]");
  CHECK(yaml_numbers(std::vector<double>{}) == "[]");
}
}  // namespace stepcast::yaml_test
