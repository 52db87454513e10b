#include "core/text.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace stepcast;

TEST_CASE("nearest_word suggests a close word and nothing for a far one", "[core]") {
  CHECK(nearest_word("bandwith", {"latency", "bandwidth"}) == "bandwidth");
  CHECK(nearest_word("zzz", {"latency", "bandwidth"}).empty());
  CHECK(nearest_word("Linear", {"dense", "lstm"}) == "dense");
  CHECK(nearest_word("Linear", {"latency"}).empty());
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
  const auto byte = [](unsigned value) { return static_cast<char>(value); };
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
