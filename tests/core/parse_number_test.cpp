#include "core/parse_number.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

TEST_CASE("parse_number takes plain finite decimals only", "[core]") {
  CHECK(parse_number("-12.5e3") == -12500.0);
  CHECK(parse_number("0.5") == 0.5);
  for (const char* bad : {"", "-", "+1", "01", "0x10", "inf", "nan", ".5", "1 ", " 1", "1,5", "1e999",
                          "1_000", "010", ".inf", ".nan", "1.5GB"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_number(bad));
  }
}

TEST_CASE("parse_quantity knows the units of its dimension only", "[core]") {
  CHECK(parse_quantity("1 Gbit/s", Dimension::bytes_per_second) == 1.25e8);
  CHECK(parse_quantity("2 GiB/s", Dimension::bytes_per_second) == 2.0 * 1024 * 1024 * 1024);
  CHECK(parse_quantity("3 min", Dimension::time) == 180.0);
  CHECK(parse_quantity("1 KiB", Dimension::bytes) == 1024.0);
  for (const char* bad : {"1 GB", "1 Gb/s", "1GB/s", "1  GB/s", "1 gb/s", "GB/s", "1 s", "1 GB/s/s"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_quantity(bad, Dimension::bytes_per_second));
  }
}

TEST_CASE("every dimension has its units, its example and its limits, and a product that overflows is none",
          "[core]") {
  for (const Dimension dimension : {Dimension::time, Dimension::bytes, Dimension::flops,
                                    Dimension::bytes_per_second, Dimension::flops_per_second}) {
    const auto value = parse_quantity(example(dimension), dimension);
    REQUIRE(value);  // an example that an error shows is valid
    const ValueRange range = valid_range(dimension);
    CHECK(range.low <= *value);
    CHECK(*value <= range.high);
  }
  CHECK(parse_quantity("8 Gflop", Dimension::flops) == 8e9);
  CHECK(parse_quantity("19 Tflop/s", Dimension::flops_per_second) == 19e12);
  CHECK_FALSE(parse_quantity("1e308 TB", Dimension::bytes));
  CHECK_FALSE(parse_quantity("1e300 Gflop", Dimension::flops_per_second));
}
