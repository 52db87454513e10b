#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "report/results/results.hpp"

using namespace stepcast;

namespace {

Results two_points() {
  Row first;
  first.set("point", "workers=1");
  first.set("workers", 1);
  first.set("step_seconds", 0.2318);
  first.set("fits", true);
  Row second;
  second.set("point", "workers=8, \"fast\"");
  second.set("workers", 8);
  second.set("halo_seconds", 1e-6);
  second.set("fits", false);
  return {"goyal", {first, second}};
}

}  // namespace

TEST_CASE("results.csv has a column for each name in order of first appearance, scenario first", "[report]") {
  CHECK(to_csv(two_points()) ==
        "scenario,point,workers,step_seconds,fits,halo_seconds\n"
        "goyal,workers=1,1,0.2318,true,\n"
        "goyal,\"workers=8, \"\"fast\"\"\",8,,false,1e-06\n");
}

TEST_CASE("a row may name its own scenario", "[report]") {
  Row row;
  row.set("scenario", "other");
  CHECK(to_csv({"goyal", {row}}) == "scenario\nother\n");
}

TEST_CASE("results.csv reads back to the same rows and the same text", "[report]") {
  const auto text = to_csv(two_points());
  const auto read = read_csv(text, "results.csv");
  CHECK(read.scenario == "goyal");
  REQUIRE(read.rows.size() == 2);
  CHECK(read.rows[0].number("step_seconds") == 0.2318);
  CHECK(read.rows[0].number("workers") == 1.0);
  CHECK(std::get<bool>(read.rows[1].at("fits")) == false);
  CHECK(read.rows[1].text("point") == "workers=8, \"fast\"");
  CHECK_FALSE(read.rows[1].number("step_seconds").has_value());
  CHECK(to_csv(read) == text);
}

TEST_CASE("text keeps its type and every byte through results.csv", "[report]") {
  const std::string text =
      GENERATE(values<std::string>({"", "1", "-0", "1e3", "true", "nan", "inf", "a,b", "\"", "\"\"a",
                                    "two\nlines", "cr\r\nlf", " space ", "\xc3\xa9", "=1+1"}));
  Row row;
  row.set("name", text);
  row.set("after", 7);
  const auto read = read_csv(to_csv({"s", {row}}), "results.csv");
  REQUIRE(read.rows.size() == 1);
  CHECK(std::get<std::string>(read.rows[0].at("name")) == text);
  CHECK(read.rows[0].number("after") == 7.0);
}

TEST_CASE("numbers keep their bits through results.csv", "[report]") {
  const double value =
      GENERATE(0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -2.5, 1e15, 123456789.125, -0.0);
  Row row;
  row.set("value", value);
  const auto read = read_csv(to_csv({"s", {row}}), "results.csv").rows.at(0).number("value");
  REQUIRE(read.has_value());
  CHECK(*read == value);
  CHECK(std::signbit(*read) == std::signbit(value));
}

TEST_CASE("a number that is not finite is an empty field", "[report]") {
  Row row;
  row.set("a", std::numeric_limits<double>::infinity());
  row.set("b", std::numeric_limits<double>::quiet_NaN());
  CHECK(to_csv({"s", {row}}) == "scenario,a,b\ns,,\n");
}

TEST_CASE("read_csv accepts CRLF and a last line without its end", "[report]") {
  const auto read = read_csv("scenario,a\r\ns,1\r\ns,2", "x.csv");
  REQUIRE(read.rows.size() == 2);
  CHECK(read.rows[1].number("a") == 2.0);
}

TEST_CASE("read_csv says where and what it expected", "[report][errors]") {
  CHECK_THROWS_WITH(read_csv("", "x.csv"), "x.csv:1:1: expected a header line, got an empty file");
  CHECK_THROWS_WITH(read_csv("a,b\n1,2\n3\n", "x.csv"),
                    "x.csv:3:1: expected 2 fields as in the header, got 1");
  CHECK_THROWS_WITH(read_csv("a\n\"x\ny", "x.csv"),
                    "x.csv:2:1: expected a closing quote, got the end of the file");
  CHECK_THROWS_WITH(read_csv("a\n\"x\"y\n", "x.csv"),
                    "x.csv:2:1: expected a comma or the end of the line after a quoted field");
  CHECK_THROWS_AS(read_csv("", "x.csv"), InputError);
}

TEST_CASE("a column put in front keeps the others in their order, and replaces its own", "[report]") {
  Row row;
  row.set("b", 1.5);
  row.set("point", std::string("old"));
  row.set("c", true);
  const Row longer = with_first("point", std::string("new"), row);
  REQUIRE(longer.cells.size() == 3);
  CHECK(longer.cells[0] == std::pair<std::string, Cell>("point", std::string("new")));
  CHECK(longer.cells[1].first == "b");
  CHECK(longer.cells[2] == std::pair<std::string, Cell>("c", true));
}

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
