#include "scenarios/reader/assignment.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"

using namespace stepcast;

namespace {

YamlNode tree() {
  return parse_yaml("a:\n  b:\n    - c: 1\n    - c: 2\n  scalar: x\nempty:\n", "s.yaml");
}

std::string text_at(const YamlNode& root, const std::string& path) {
  const YamlNode* found = find_path(root, path);
  return found == nullptr ? "(none)" : found->text;
}

void set(YamlNode& root, const std::string& text) {
  assign(root, parse_assignment(text));
}

}  // namespace

TEST_CASE("a path goes through mappings by key and through lists by index", "[scenarios]") {
  YamlNode root = tree();
  CHECK(text_at(root, "a.b[1].c") == "2");
  set(root, "a.b[0].c=7");
  CHECK(text_at(root, "a.b[0].c") == "7");
  CHECK(text_at(root, "a.b[1].c") == "2");
  set(root, "a.b[1]=whole");
  CHECK(text_at(root, "a.b[1]") == "whole");
  CHECK(text_at(root, "a.b[1].c") == "(none)");
}

TEST_CASE("assigning creates missing mappings, also below an empty value", "[scenarios]") {
  YamlNode root = tree();
  set(root, "x.y.z=1");
  CHECK(text_at(root, "x.y.z") == "1");
  set(root, "empty.k=2");
  CHECK(text_at(root, "empty.k") == "2");
  CHECK(root.entries.size() == 3);
}

TEST_CASE("find_path finds nothing for a missing path and changes nothing", "[scenarios]") {
  const YamlNode root = tree();
  for (const char* path :
       {"b", "a.x", "a.b[2]", "a.b.c", "a.scalar.x", "a[0]", "", "a.", ".a", "a..b", "a.b[-1]"}) {
    INFO(path);
    CHECK(find_path(root, path) == nullptr);
  }
}

TEST_CASE("an invalid assignment is refused at its place", "[scenarios][errors]") {
  YamlNode root = tree();
  CHECK_THROWS_WITH(set(root, "a.scalar.k=1"), "--set a.scalar.k=1: a.scalar.k: there is no such key");
  CHECK_THROWS_WITH(set(root, "a.b[2].c=1"), "--set a.b[2].c=1: a.b[2].c: there is no such key");
  CHECK_THROWS_WITH(set(root, "a.b.c=1"), "--set a.b.c=1: a.b.c: there is no such key");
  const YamlNode file = parse_yaml("a.scalar.k: 1", "f.yaml");
  CHECK_THROWS_WITH(assign(root, {"a.scalar.k", file.entries[0].second}),
                    "f.yaml:1:13: a.scalar.k: there is no such key");
}

TEST_CASE("null takes a key away", "[scenarios]") {
  YamlNode root = tree();
  set(root, "a.b[0]=~");
  CHECK(text_at(root, "a.b[0].c") == "2");
  CHECK(text_at(root, "a.b[1].c") == "(none)");
  set(root, "a.scalar=~");
  CHECK(text_at(root, "a.scalar") == "(none)");
  set(root, "a=null");
  CHECK(root.entries.size() == 1);
  CHECK_THROWS_WITH(set(root, "a.b=~"), "--set a.b=~: a.b: there is no such key");
  CHECK_THROWS_WITH(set(root, "empty.b=~"), "--set empty.b=~: empty.b: there is no such key");
  CHECK(root.entries.size() == 1);
}

TEST_CASE("the option --set takes the text after the first = as YAML", "[scenarios]") {
  const Assignment list = parse_assignment("sweep.workers=[1, 2]");
  CHECK(list.path == "sweep.workers");
  REQUIRE(list.value.items.size() == 2);
  CHECK(list.value.items[1].text == "2");
  CHECK(parse_assignment("a=b=c").value.text == "b=c");
  CHECK(parse_assignment("a=25 MiB").value.text == "25 MiB");
  CHECK(parse_assignment("a=\"7\"").value.quoted);
  CHECK(parse_assignment("a={k: v}").value.find("k")->text == "v");
  CHECK(to_string(parse_assignment("a={k: v}").value.find("k")->place) == "--set a={k: v}");
}

TEST_CASE("an invalid --set is refused with the expected form", "[scenarios][errors]") {
  for (const char* text :
       {"", "x", "=3", ".a=3", "a.=3", "a..b=3", "[0]=3", "a[0=3", "a[x]=3", "a[-1]=3", "a[0]b=3"}) {
    CHECK_THROWS_WITH(parse_assignment(text), std::string("--set ") + text +
                                                  ": expected KEY=VALUE, such as strategy.bucket=\"25 MiB\"");
  }
  CHECK_THROWS_WITH(parse_assignment("a="), "--set a=: expected a value after =, got nothing");
  CHECK_THROWS_AS(parse_assignment("a=[1"), InputError);
  CHECK_THROWS_AS(parse_assignment("a=!!int 3"), InputError);
}

TEST_CASE("a path has at most as many parts as a file has levels", "[scenarios][errors]") {
  std::string path = "a";
  for (int i = 1; i < 64; ++i) path += ".a";
  YamlNode root = parse_yaml("b: 1", "s.yaml");
  set(root, path + "=1");
  CHECK(text_at(root, path) == "1");
  for (int i = 0; i < 50'000; ++i) path += ".a";
  CHECK_THROWS_WITH(set(root, path + "=1"),
                    Catch::Matchers::EndsWith(": expected KEY=VALUE, such as strategy.bucket=\"25 MiB\""));
  CHECK_THROWS_WITH(assign(root, {path, root.entries[0].second}),
                    Catch::Matchers::EndsWith(": there is no such key"));
}
