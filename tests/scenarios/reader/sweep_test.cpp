#include "scenarios/reader/sweep.hpp"

#include <fmt/format.h>

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

namespace {

struct Sweep {
  std::vector<Point> points;
  std::vector<std::string> keys;
};

Sweep sweep_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "s.yaml");
  Sweep sweep;
  read_sweep(YamlValue(node, "sweep"), sweep.points, sweep.keys);
  return sweep;
}

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  for (const Point& point : sweep_of(text).points) names.push_back(point.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a mapping is the product of its keys, the last key fastest", "[scenarios]") {
  const Sweep sweep = sweep_of("{workers: [1, 2], strategy.all_reduce: [ring, automatic], seed: [7]}");
  CHECK(sweep.keys == Names{"workers", "strategy.all_reduce", "seed"});
  REQUIRE(sweep.points.size() == 4);
  CHECK(sweep.points[0].name == "workers=1, strategy.all_reduce=ring, seed=7");
  CHECK(sweep.points[1].name == "workers=1, strategy.all_reduce=automatic, seed=7");
  CHECK(sweep.points[2].name == "workers=2, strategy.all_reduce=ring, seed=7");
  CHECK(sweep.points[3].name == "workers=2, strategy.all_reduce=automatic, seed=7");
  CHECK(sweep.points[2].values[0].path == "workers");
  CHECK(sweep.points[2].values[0].value.text == "2");
}

TEST_CASE("a list of mappings is one after the other, and its keys are named once", "[scenarios]") {
  const Sweep sweep = sweep_of("[{workers: [8, 16], a: [x]}, {a: [y], b: [z]}]");
  CHECK(sweep.keys == Names{"workers", "a", "b"});
  REQUIRE(sweep.points.size() == 3);
  CHECK(sweep.points[1].name == "workers=16, a=x");
  CHECK(sweep.points[2].name == "a=y, b=z");
}

TEST_CASE("ranges multiply or add up to and with their end", "[scenarios]") {
  CHECK(names_of("{w: {from: 1, to: 8, times: 2}}") == Names{"w=1", "w=2", "w=4", "w=8"});
  CHECK(names_of("{w: {from: 3, to: 20, times: 3}}") == Names{"w=3", "w=9"});
  CHECK(names_of("{w: {from: 0, to: 20, step: 10}}") == Names{"w=0", "w=10", "w=20"});
  CHECK(names_of("{w: {from: 5, to: 5, step: 1}}") == Names{"w=5"});
  CHECK(names_of("{w: 3..20}") == Names{"w=3", "w=6", "w=12"});
  CHECK(names_of("{w: 5..5}") == Names{"w=5"});
  CHECK(names_of("{w: {from: 1000000000, to: 1000000000, times: 1000000}}") == Names{"w=1000000000"});
}

TEST_CASE("lists and mappings can be values and are written out in names", "[scenarios]") {
  CHECK(names_of("{a: [[1, [2]], {k: v, l: [w]}, 25 MiB]}") ==
        Names{"a=[1, [2]]", "a={k: v, l: [w]}", "a=25 MiB"});
}

TEST_CASE("an invalid sweep is refused with place and reason", "[scenarios][errors]") {
  CHECK_THROWS_WITH(sweep_of("3"),
                    "s.yaml:1:1: sweep: expected a mapping, such as {workers: [1, 2, 4]}, got \"3\"");
  CHECK_THROWS_WITH(sweep_of("[3]"),
                    "s.yaml:1:2: sweep[0]: expected a mapping, such as {workers: [1, 2, 4]}, got \"3\"");
  CHECK_THROWS_WITH(sweep_of("{}"), "s.yaml:1:1: sweep: expected at least one key, got a mapping");
  CHECK_THROWS_WITH(sweep_of("{w: 3}"),
                    "s.yaml:1:5: sweep.w: expected a list of values, such as [1, 2, 4], or 1..4, got \"3\"");
  for (const char* range : {"8..4", "0..4", "a..4", "4..", "4..9000000000"}) {
    CHECK_THROWS_WITH(
        sweep_of(fmt::format("{{w: {}}}", range)),
        fmt::format("s.yaml:1:5: sweep.w: expected FIRST..LAST of integers from 1 to 1e9, which "
                    "doubles from FIRST, such as 8..256, got \"{}\"",
                    range));
  }
  CHECK_THROWS_WITH(sweep_of("{w: []}"), "s.yaml:1:5: sweep.w: expected at least one value, got a list");
  CHECK_THROWS_WITH(
      sweep_of("{w: {from: 1, to: 8}}"),
      "s.yaml:1:5: sweep.w: expected either times or step, such as {from: 1, to: 64, times: 2}");
  CHECK_THROWS_WITH(
      sweep_of("{w: {from: 1, to: 8, times: 2, step: 2}}"),
      "s.yaml:1:5: sweep.w: expected either times or step, such as {from: 1, to: 64, times: 2}");
  CHECK_THROWS_WITH(sweep_of("{w: {from: 0, to: 8, times: 2}}"),
                    "s.yaml:1:12: sweep.w.from: expected an integer >= 1 with times, got \"0\"");
  CHECK_THROWS_WITH(sweep_of("{w: {from: 8, to: 1, times: 2}}"),
                    "s.yaml:1:19: sweep.w.to: expected an integer from 8 to 1000000000, got \"1\"");
  CHECK_THROWS_WITH(sweep_of("{w: {from: 1, to: 8, times: 1}}"),
                    "s.yaml:1:29: sweep.w.times: expected an integer from 2 to 1000000, got \"1\"");
  CHECK_THROWS_WITH(sweep_of("{w: {from: 1, to: 8, step: 0}}"),
                    "s.yaml:1:28: sweep.w.step: expected an integer from 1 to 1000000000, got \"0\"");
  CHECK_THROWS_WITH(sweep_of("{w: {from: 1, two: 8}}"),
                    "s.yaml:1:15: sweep.w.two: unknown key; did you mean \"to\"? (expected one of: from, to, "
                    "times, step)");
  CHECK_THROWS_WITH(sweep_of("{w: {to: 8, step: 1}}"),
                    "s.yaml:1:5: sweep.w.from: missing (expected an integer)");
}

TEST_CASE("equal points are refused, because results and journal identify points by name",
          "[scenarios][errors]") {
  CHECK_THROWS_WITH(sweep_of("{w: [1, 2, 1]}"),
                    "s.yaml:1:1: sweep: expected different points, got \"w=1\" twice");
  CHECK_THROWS_WITH(sweep_of("[{w: [1, 2]}, {w: [2]}]"),
                    "s.yaml:1:1: sweep: expected different points, got \"w=2\" twice");
  CHECK(names_of("[{w: [1], a: [x]}, {w: [1]}]") == Names{"w=1, a=x", "w=1"});
}

TEST_CASE("a sweep of 100,000 points is accepted, and one more point is refused before it is created",
          "[scenarios][errors]") {
  CHECK(sweep_of("{w: {from: 1, to: 100000, step: 1}}").points.size() == 100'000);
  CHECK_THROWS_AS(sweep_of("{w: {from: 1, to: 100001, step: 1}}"), LimitError);
  CHECK_THROWS_WITH(
      sweep_of("{a: {from: 1, to: 400, step: 1}, b: {from: 1, to: 251, step: 1}}"),
      "s.yaml:1:37: sweep.b: more than 100000 points; sweep fewer values or split the scenario");
  CHECK_THROWS_AS(sweep_of("[{a: {from: 1, to: 60000, step: 1}}, {a: {from: 1, to: 60000, step: 1}}]"),
                  LimitError);
  CHECK_THROWS_AS(sweep_of("{a: {from: 0, to: 1000000000, step: 1}}"), LimitError);
}

TEST_CASE("the memory of all points of a sweep is limited, and not only their number",
          "[scenarios][errors]") {
  std::string many = "{w: {from: 1, to: 1000, step: 1}, a: [[x";
  for (int i = 1; i < 3000; ++i) many += ", x";
  CHECK_THROWS_WITH(
      sweep_of(many + "]]}"),
      "s.yaml:1:38: sweep.a: the values of all points take more than 256 MiB; sweep fewer or smaller");
  CHECK_THROWS_AS(sweep_of(many + "]]}"), LimitError);
  std::string keys = "{k0: [0]";
  for (int i = 1; i < 64; ++i) keys += ", k" + std::to_string(i) + ": [0]";
  CHECK(sweep_of(keys + "}").points.size() == 1);
  CHECK_THROWS_WITH(sweep_of(keys + ", more: [0]}"),
                    Catch::Matchers::EndsWith("sweep.more: more than 64 swept keys"));
}

TEST_CASE("exclude removes points from a product, and include adds points", "[scenarios][sweep]") {
  CHECK(names_of(
            "{workers: [1, 2], a: [x, y], exclude: [{workers: 1, a: y}], include: [{workers: 8, a: z}]}") ==
        Names{"workers=1, a=x", "workers=2, a=x", "workers=2, a=y", "workers=8, a=z"});
  CHECK(names_of("{include: [{workers: 3}, {workers: 5, a: x}]}") == Names{"workers=3", "workers=5, a=x"});
  CHECK(names_of("[{workers: [1, 2], exclude: [{workers: 2}]}, {workers: [2]}]") ==
        Names{"workers=1", "workers=2"});
}

TEST_CASE("an exclude that meets no point, and a sweep that is left empty, are refused",
          "[scenarios][sweep][errors]") {
  CHECK_THROWS_WITH(sweep_of("{workers: [1], exclude: [{workers: 2}]}"),
                    Catch::Contains("sweep.exclude[0]: no point of this sweep has workers=2"));
  CHECK_THROWS_WITH(sweep_of("{workers: [1], exclude: [{workers: 1}]}"),
                    Catch::Contains("expected at least one point"));
  CHECK_THROWS_WITH(sweep_of("{workers: [1], include: [{workers: 1}]}"),
                    Catch::Contains("\"workers=1\" twice"));
}
