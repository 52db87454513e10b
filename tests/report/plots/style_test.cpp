#include "report/plots/style.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

using namespace stepcast;

namespace {

std::string labels(const Axis& axis) {
  std::string out;
  for (const Tick& tick : axis.ticks) out += tick.label + "|";
  return out;
}

}  // namespace

TEST_CASE("the worker axis has powers of two, thinned out where they do not fit", "[report][plot]") {
  CHECK(labels(power_of_two_axis(1, 64, 400)) == "1|2|4|8|16|32|64|");
  CHECK(labels(power_of_two_axis(1, 1024, 400)) == "1||4||16||64||256||1024|");
  CHECK(labels(power_of_two_axis(8, 8, 400)) == "4|8|16|");
  CHECK(labels(power_of_two_axis(3, 12, 400)) == "4|8|");
}

TEST_CASE("a logarithmic axis has 1, 2, 5 or powers of ten, and always three", "[report][plot]") {
  CHECK(labels(decimal_log_axis(120, 3000)) == "100|200|500|1k|2k|");
  CHECK(labels(decimal_log_axis(1, 1e5)) == "1|10|100|1k|10k|100k|");
  for (double value = 0.01; value < 1e6; value *= 1.37)
    CHECK(decimal_log_axis(value, value).ticks.size() >= 3);
}

TEST_CASE("a linear axis starts on a tick and covers its values", "[report][plot]") {
  CHECK(labels(linear_axis(0, 100, 5)) == "0|20|40|60|80|100|");
  CHECK(labels(linear_axis(64, 103.5, 6)) == "60|70|80|90|100|");
  const auto flat = linear_axis(5, 5, 5);
  CHECK(flat.low <= 5);
  CHECK(flat.high > 5);
}

TEST_CASE("long names of a legend that differ at their ends stay different", "[report][plot]") {
  const std::string start(70, 'a');
  const std::string commands =
      legend_commands(laid_out({{.name = start + "-one"}, {.name = start + "-two"}}, 900), 400);
  CHECK(commands.find("...") != std::string::npos);
  CHECK(commands.find("-one") != std::string::npos);
  CHECK(commands.find("-two") != std::string::npos);
}

TEST_CASE("fifteen series have fifteen looks, and a part has one colour whatever stands beside it",
          "[report][plot]") {
  std::set<std::string> looks, on_page;
  for (std::size_t i = 0; i < 15; ++i) {
    looks.insert(series_line(i));
    on_page.insert(std::string(series_colour(i)) + series_dashes(i));
  }
  CHECK(looks.size() == 15);
  CHECK(on_page.size() == 15);
  CHECK(part_colour("data loading", 2) == std::string(part_colour("data loading", 4)));
  CHECK(part_colour("a part of its own", 1) == std::string(series_colour(1)));
}
