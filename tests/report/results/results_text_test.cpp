#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"
#include "tests/report/temporary_folder.hpp"

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

TEST_CASE("sha256 gives the digests of FIPS 180-4", "[report]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("manifest.json reads back to what was written", "[report]") {
  const TemporaryFolder folder;
  write_atomically(folder.path() / "a.yaml", "abc");
  const Manifest manifest{.version = "0.1.0",
                          .scenario = "goyal \"1h\"",
                          .date = "2026-01-02T03:04:05Z",
                          .command = {"stepcast", "run", "a b.yaml"},
                          .settings = {"sweep.workers=8..64"},
                          .seed = 18446744073709551615U,
                          .sweep = {"workers"},
                          .fidelities = {"coupled", "message"},
                          .inputs = {hashed("scenario", folder.path() / "a.yaml")}};
  const auto text = to_json(manifest);
  const auto read = read_manifest(text, "manifest.json");
  CHECK(to_json(read) == text);
  CHECK(read.settings == manifest.settings);
  CHECK(read.seed == manifest.seed);
  CHECK(read.command == manifest.command);
  CHECK(read.inputs.at(0).role == "scenario");
  CHECK(read.inputs.at(0).sha256 == sha256("abc"));
}

TEST_CASE("read_manifest refuses what is no manifest", "[report][errors]") {
  CHECK_THROWS_AS(read_manifest("{}", "manifest.json"), InputError);
  CHECK_THROWS_WITH(read_manifest("{", "m.json"),
                    Catch::StartsWith("m.json:1:1: expected a manifest of stepcast: "));
  CHECK_THROWS_WITH(read_manifest(R"({"seed":1e20})", "m.json"),
                    "m.json:1:1: seed: expected an integer from 0 to 18446744073709551615, got 1e+20");
}

TEST_CASE("a shard's description with a number that no run writes is refused", "[report][errors]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "shard.json";
  const auto read_with = [&](const std::string& draws, const std::string& shard, const std::string& shards) {
    write_atomically(file,
                     R"({"build":"1","scenario":"s","settings":[],"inputs":[],"results_only":true,"draws":)" +
                         draws + ",\"shard\":" + shard + ",\"shards\":" + shards + "}");
    return read_shard_folder(folder.path());
  };
  CHECK(read_with("0", "1", "2").shard == 1);
  CHECK_THROWS_WITH(read_with("-1", "0", "1"),
                    file.string() + ":1:1: draws: expected an integer from 0 to 100000, got -1");
  CHECK_THROWS_AS(read_with("1e300", "0", "1"), InputError);
  CHECK_THROWS_AS(read_with("1", "-1", "1"), InputError);
  CHECK_THROWS_WITH(read_with("1", "0", "\"two\""),
                    file.string() + ":1:1: shards: expected an integer from 1 to 1000000, got \"two\"");
}
