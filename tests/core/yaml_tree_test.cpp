#include <catch2/catch.hpp>
#include <string>

#include "core/error.hpp"
#include "core/yaml.hpp"

using namespace stepcast;

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
