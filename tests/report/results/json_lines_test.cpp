#include "report/results/json_lines.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "core/error.hpp"
#include "report/results/csv.hpp"

using namespace stepcast;

TEST_CASE("results.jsonl has one object a row, typed", "[report]") {
  Row row;
  row.set("point", "a \"b\"\n");
  row.set("workers", 8);
  row.set("speedup", 8.0);
  row.set("step_seconds", 0.2318);
  row.set("tiny", 1e-7);
  row.set("fits", true);
  row.set("cost", std::numeric_limits<double>::infinity());
  CHECK(to_json_lines({"goyal", {row}}) ==
        "{\"scenario\":\"goyal\",\"point\":\"a "
        "\\\"b\\\"\\n\",\"workers\":8,\"speedup\":8.0,\"step_seconds\":0.2318,"
        "\"tiny\":1e-07,\"fits\":true,\"cost\":null}\n");
}

TEST_CASE("results.jsonl reads back to the same types, columns and text", "[report]") {
  Row row;
  row.set("zebra", 8.0);
  row.set("ant", std::int64_t{9007199254740993});
  row.set("text", "1");
  row.set("yes", false);
  const Results results{"s", {row, row}};
  const auto read = read_json_lines(to_json_lines(results), "results.jsonl");
  REQUIRE(read.rows.size() == 2);
  CHECK(read.scenario == "s");
  CHECK(std::get<double>(read.rows[0].at("zebra")) == 8);
  CHECK(std::get<std::int64_t>(read.rows[0].at("ant")) == 9007199254740993);
  CHECK(std::get<std::string>(read.rows[0].at("text")) == "1");
  CHECK_FALSE(std::get<bool>(read.rows[0].at("yes")));
  CHECK(to_json_lines(read) == to_json_lines(results));
  CHECK(to_csv(read) == to_csv(results));
}

TEST_CASE("bytes that are not UTF-8 still give valid JSON", "[report]") {
  Row row;
  row.set("name", "\xff");
  CHECK(read_json_lines(to_json_lines({"s", {row}}), "x").rows.at(0).text("name") == "\xef\xbf\xbd");
}

TEST_CASE("a last line that was cut off is dropped on demand, any other fault is refused",
          "[report][errors]") {
  const std::string message = "expected a JSON object of text, numbers and true or false";
  const std::string torn = "{\"a\":1}\n{\"a\":";
  CHECK(read_json_lines(torn, "x.jsonl", TornLine::drop).rows.size() == 1);
  CHECK_THROWS_WITH(read_json_lines(torn, "x.jsonl"), "x.jsonl:2:1: " + message);
  CHECK_THROWS_WITH(read_json_lines("{\"a\":\n{\"a\":1}\n", "x.jsonl", TornLine::drop),
                    "x.jsonl:1:1: " + message);
  CHECK_THROWS_WITH(read_json_lines("[1]\n", "x.jsonl"), "x.jsonl:1:1: " + message);
  CHECK_THROWS_AS(read_json_lines("{\"a\":[1]}\n", "x.jsonl"), InputError);
}
