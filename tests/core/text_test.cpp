#include "core/text.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "core/expects.hpp"

using namespace stepcast;

TEST_CASE("a text is split at blanks of any kind and number", "[core]") {
  CHECK(split_words(" GPU0\tX  NV12\r\n") == std::vector<std::string>{"GPU0", "X", "NV12"});
  CHECK(split_words("one") == std::vector<std::string>{"one"});
  CHECK(split_words(" \v\f").empty());
  CHECK(split_words("").empty());
}

TEST_CASE("nearest_word suggests a close word and nothing for a far one", "[core]") {
  CHECK(nearest_word("bandwith", {"latency", "bandwidth"}) == "bandwidth");
  CHECK(nearest_word("zzz", {"latency", "bandwidth"}).empty());
  CHECK(nearest_word("Linear", {"dense", "lstm"}) == "dense");
  CHECK(nearest_word("Linear", {"latency"}).empty());
  add_other_name("plane", "aeroplane");
  CHECK(nearest_word("Plane", {"planer", "aeroplane"}) == "aeroplane");
  CHECK(nearest_word("", {"a", "b"}).empty());
}

TEST_CASE("nearest_word prefers words that begin with or contain the text to similar ones", "[core]") {
  CHECK(nearest_word("v100", {"b200", "p100-sxm2", "v100-sxm2-16gb"}) == "v100-sxm2-16gb");
  CHECK(nearest_word("h200", {"b200", "gh200-96gb"}) == "gh200-96gb");
  CHECK(nearest_word("v100", {"a-v100", "v100-sxm2-16gb", "v100-pcie"}) == "v100-pcie");
  CHECK(nearest_word("band", {"latency", "bandwidth"}) == "bandwidth");
  CHECK(nearest_word("V100", {"b200", "v100-sxm2-16gb"}) == "v100-sxm2-16gb");
  CHECK(nearest_word("BF16", {"f16", "bf16"}) == "bf16");
  CHECK(nearest_word("ba", {"latency", "bandwidth"}).empty());  // two letters do not suffice
}

namespace {

/// The UTF-8 sequence of a code point, by the table of Unicode's section 3.9.
std::string encoded(unsigned point) {
  const auto byte = [](unsigned value) -> char { return value; };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xC0 | point >> 6), byte(0x80 | (point & 0x3F))};
  if (point < 0x10000)
    return {byte(0xE0 | point >> 12), byte(0x80 | (point >> 6 & 0x3F)), byte(0x80 | (point & 0x3F))};
  return {byte(0xF0 | point >> 18), byte(0x80 | (point >> 12 & 0x3F)), byte(0x80 | (point >> 6 & 0x3F)),
          byte(0x80 | (point & 0x3F))};
}

}  // namespace

TEST_CASE("every code point but surrogates and control characters is text", "[core]") {
  for (unsigned point = 0; point <= 0x120000; ++point) {
    const std::string text = "a" + encoded(point) + "b";
    const auto bad = first_bad_byte(text);
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF, beyond = point > 0x10FFFF;
    const bool control = (point < 0x20 && point != 9 && point != 10 && point != 13) || point == 0x7F;
    const std::string reason = surrogate || beyond ? "not valid UTF-8 text" : "control character";
    if (bad.has_value() != (surrogate || beyond || control) ||
        (bad && (bad->offset != 1 || bad->reason != reason)))
      FAIL("U+" << std::hex << point);
  }
}

TEST_CASE("sequences that are too long, cut off or without a lead byte are not text", "[core][errors]") {
  // Overlong forms of "/", of U+07FF and of U+FFFF; a lone continuation; bytes that begin no sequence.
  for (const std::string bad : {"\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\x80", "\xBF",
                                "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    const auto found = first_bad_byte("key: " + bad);
    REQUIRE(found);
    CHECK(found->offset == 5);
    CHECK(printable("a" + bad + "b") == "a" + std::string(bad.size(), ' ') + "b");
  }
  for (const std::string whole : {"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
    CHECK_FALSE(first_bad_byte(whole));
    for (std::size_t length = 1; length < whole.size(); ++length) {
      CHECK(first_bad_byte(whole.substr(0, length)));           // the text ends inside the sequence
      CHECK(first_bad_byte(whole.substr(0, length) + "ab/c"));  // another character follows
    }
  }
}

TEST_CASE("printable text is one line that is never cut inside a character", "[core]") {
  CHECK(printable("a\tb\r\nc\x1B[31m\x7F") == "a b  c [31m ");
  std::string euros;
  for (int i = 0; i < 30; ++i) euros += "\xE2\x82\xAC";
  CHECK(printable(euros) == euros.substr(0, 60) + "...");
  CHECK(printable("x" + euros) == "x" + euros.substr(0, 57) + "...");  // 58 bytes: three more do not fit
}

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

TEST_CASE("a text that is nearly a quantity has the quantity as advice", "[core][errors]") {
  const auto one = [](const std::string& quantity) { return "; did you mean \"" + quantity + "\"?"; };
  CHECK(quantity_advice("25MiB", Dimension::bytes) == one("25 MiB"));
  CHECK(quantity_advice("25 mb", Dimension::bytes) == one("25 MB"));
  CHECK(quantity_advice("1.5  GBytes", Dimension::bytes) == one("1.5 GB"));
  CHECK(quantity_advice("25 M", Dimension::bytes) == one("25 MB"));
  CHECK(quantity_advice("100Gbps", Dimension::bytes_per_second) == one("100 Gbit/s"));
  CHECK(quantity_advice("100 Gb/s", Dimension::bytes_per_second) == one("100 Gbit/s"));
  CHECK(quantity_advice("12 GBps", Dimension::bytes_per_second) == one("12 GB/s"));
  CHECK(quantity_advice("12 GiBps", Dimension::bytes_per_second) == one("12 GiB/s"));
  CHECK(quantity_advice("25 Gbytes/s", Dimension::bytes_per_second) == one("25 GB/s"));
  CHECK(quantity_advice("10 gb/s", Dimension::bytes_per_second) ==
        "; did you mean \"10 Gbit/s\" or \"10 GB/s\"?");
  CHECK(quantity_advice("5us", Dimension::time) == one("5 us"));
  CHECK(quantity_advice("5 \xC2\xB5s", Dimension::time) == one("5 us"));
  CHECK(quantity_advice("-1e-3 seconds", Dimension::time) == one("-1e-3 s"));
  CHECK(quantity_advice("312 TFLOPS", Dimension::flops_per_second) == one("312 Tflop/s"));
  CHECK(quantity_advice("8.2GFLOPs", Dimension::flops) == one("8.2 Gflop"));
  for (const char* none : {"25", "25 ", "MiB", "25 pounds", "", "1,000 MB", "25 MiB", "5 m", "nan s"})
    CHECK(quantity_advice(none, Dimension::bytes).empty() == (std::string(none) != "5 m"));
}

TEST_CASE("every unit of a dimension that is written without a space is recognised", "[core][errors]") {
  for (const Dimension dimension : {Dimension::time, Dimension::bytes, Dimension::flops,
                                    Dimension::bytes_per_second, Dimension::flops_per_second}) {
    std::string text(example(dimension));
    text.erase(text.find(' '), 1);
    CHECK(quantity_advice(text, dimension) == "; did you mean \"" + std::string(example(dimension)) + "\"?");
  }
  CHECK(unit_ratio("s", "ms") == 1000);
  CHECK(unit_ratio("KiB", "MiB") == 1.0 / 1024);
  CHECK(unit_ratio("GB/s", "Gbit/s") == 8);
  CHECK_FALSE(unit_ratio("s", "B"));
  CHECK_FALSE(unit_ratio("", ""));
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

TEST_CASE("dates have the forms of ISO 8601", "[core]") {
  CHECK_THAT(today(), Catch::Matches("20[0-9]{2}-[01][0-9]-[0-3][0-9]"));
  CHECK_THAT(date_and_time(),
             Catch::Matches("20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z"));
}

TEST_CASE("each kind of error has the exit code that users' scripts rely on", "[core][errors]") {
  CHECK(exit_code_of(std::logic_error("")) == ExitCode{1});
  CHECK(exit_code_of(InputError("")) == ExitCode{2});
  CHECK(exit_code_of(LimitError("")) == ExitCode{3});
  CHECK(exit_code_of(Interrupted("")) == ExitCode{4});
  CHECK(exit_code_of(RankLost("")) == ExitCode{4});
  CHECK(exit_code_of(OutsideTolerance("")) == ExitCode{5});
}

TEST_CASE("what has run out is named in one line, with the exit code of a limit", "[core][errors]") {
  CHECK(exit_code_of(std::bad_alloc()) == ExitCode{3});
  CHECK_THAT(error_text(std::bad_alloc()), Catch::Matchers::StartsWith("out of memory; "));
  const std::system_error files(EMFILE, std::generic_category(), "socketpair");
  CHECK(exit_code_of(files) == ExitCode{3});
  CHECK(error_text(files) == "socketpair: Too many open files; raise the limit (ulimit -n)");
  CHECK(exit_code_of(std::system_error(EIO, std::generic_category())) == ExitCode{1});
}
TEST_CASE("what a caller must guarantee is checked where NDEBUG is not defined", "[core]") {
  CHECK_NOTHROW(expects(true, "nothing"));
  if (kChecksCallers) {
    CHECK_THROWS_WITH(
        expects(false, "a rank of the plan"),
        Catch::Contains("text_test.cpp:") && Catch::EndsWith("expected of the caller: a rank of the plan"));
  } else {
    CHECK_NOTHROW(expects(false, "a rank of the plan"));
  }
}
