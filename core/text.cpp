#include "core/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace stepcast {

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint8_t { return text[at + i]; };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const std::uint8_t second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool beyond =
      (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);  // surrogates, > U+10FFFF
  return overlong || beyond ? 0 : length;
}

namespace {

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

}  // namespace

std::optional<BadByte> first_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return BadByte{at, "not valid UTF-8 text"};
    if (is_control(text[at])) return BadByte{at, "control character"};
    at += length;
  }
  return std::nullopt;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::size_t step = length == 0 ? 1 : length;
    if (line.size() + step > kLongest) return line + "...";
    const bool plain =
        length > 0 && !is_control(text[at]) && text[at] != '\n' && text[at] != '\r' && text[at] != '\t';
    line += plain ? std::string(text.substr(at, step)) : " ";
    at += step;
  }
  return line;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

/// Small letters of ASCII; a misspelt word should be found whatever its case.
std::string lower(std::string_view text) {
  std::string small(text);
  for (char& letter : small)
    if (letter >= 'A' && letter <= 'Z') letter = letter - 'A' + 'a';
  return small;
}

/// Those of add_other_name.
std::map<std::string, std::string, std::less<>>& added_names() {
  static std::map<std::string, std::string, std::less<>> names;
  return names;
}

/// Names that PyTorch and others give to what has another name here.
std::string_view word_for(std::string_view name) {
  using Pair = std::pair<std::string_view, std::string_view>;
  constexpr std::array kNames{Pair{"linear", "dense"},
                              Pair{"conv1d", "convolution"},
                              Pair{"conv2d", "convolution"},
                              Pair{"conv3d", "convolution"},
                              Pair{"flatten", "reshape"},
                              Pair{"view", "reshape"},
                              Pair{"avgpool2d", "average_pool"},
                              Pair{"cat", "concatenate"},
                              Pair{"upsample", "up_sample"},
                              Pair{"mseloss", "mean_squared_error"},
                              Pair{"crossentropyloss", "softmax_cross_entropy"},
                              Pair{"bceloss", "sigmoid_cross_entropy"},
                              Pair{"multiheadattention", "attention"}};
  const auto known = std::ranges::find(kNames, name, &Pair::first);
  if (known != kNames.end()) return known->second;
  const auto added = added_names().find(name);
  return added == added_names().end() ? name : added->second;
}

}  // namespace

void add_other_name(const std::string& name, const std::string& word) {
  added_names().emplace(name, word);
}

std::string nearest_word(std::string_view text, const std::vector<std::string>& words) {
  const std::string given = lower(text.substr(0, 100));
  const std::string other(word_for(given));
  const bool known = std::ranges::find(words, other) != words.end();
  const std::string& sought = known ? other : given;
  const auto nearest = [&](const auto& counts) {
    std::string best;
    std::size_t least = 0;
    for (const std::string& word : words) {
      const std::string candidate = lower(word);
      if (!counts(candidate)) continue;
      const std::size_t distance = edit_distance(sought, candidate);
      if (best.empty() || distance < least) {
        best = word;
        least = distance;
      }
    }
    return best;
  };
  std::string best;
  if (sought.size() > 2) best = nearest([&](const std::string& word) { return word.starts_with(sought); });
  if (sought.size() > 2 && best.empty())
    best = nearest([&](const std::string& word) { return word.find(sought) != std::string::npos; });
  if (!best.empty()) return best;
  const std::size_t most = std::max<std::size_t>(2, sought.size() / 3);
  return nearest([&](const std::string& word) {
    const std::size_t distance = edit_distance(sought, word);
    return distance <= most && distance < word.size();
  });
}

std::string word_advice(std::string_view text, const std::vector<std::string>& words) {
  const std::string nearest = nearest_word(text, words);
  return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool has_decimal_form(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  return !(text.size() > 1 && text[0] == '0' &&
           is_digit(text[1]));  // 010 is octal in YAML 1.1, decimal to people
}

template <class Number>
std::optional<Number> parse(std::string_view text) {
  if (!has_decimal_form(text)) return std::nullopt;
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Prefix {
  std::string_view text;
  double factor;
};

constexpr std::array kDecimal{Prefix{"", 1.0},  Prefix{"k", 1e3},  Prefix{"M", 1e6},
                              Prefix{"G", 1e9}, Prefix{"T", 1e12}, Prefix{"P", 1e15}};
constexpr std::array kBinary{Prefix{"Ki", 0x1p10}, Prefix{"Mi", 0x1p20}, Prefix{"Gi", 0x1p30},
                             Prefix{"Ti", 0x1p40}};
constexpr std::array kTime{Prefix{"s", 1.0},   Prefix{"ms", 1e-3},  Prefix{"us", 1e-6},
                           Prefix{"ns", 1e-9}, Prefix{"min", 60.0}, Prefix{"h", 3600.0}};

template <class Prefixes>
std::optional<double> prefix_factor(std::string_view unit, std::string_view base, const Prefixes& prefixes) {
  if (!unit.ends_with(base)) return std::nullopt;
  unit.remove_suffix(base.size());
  for (const Prefix& prefix : prefixes) {
    if (prefix.text == unit) return prefix.factor;
  }
  return std::nullopt;
}

std::optional<double> byte_factor(std::string_view unit) {
  if (const auto binary = prefix_factor(unit, "B", kBinary)) return binary;
  return prefix_factor(unit, "B", kDecimal);
}

std::optional<double> unit_factor(std::string_view unit, Dimension dimension) {
  if (dimension == Dimension::time) return prefix_factor(unit, "", kTime);
  if (dimension == Dimension::bytes) return byte_factor(unit);
  if (dimension == Dimension::flops) return prefix_factor(unit, "flop", kDecimal);
  if (dimension == Dimension::flops_per_second) return prefix_factor(unit, "flop/s", kDecimal);
  if (const auto bits = prefix_factor(unit, "bit/s", kDecimal)) return *bits / 8;
  if (!unit.ends_with("/s")) return std::nullopt;
  return byte_factor(unit.substr(0, unit.size() - 2));
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\v\f";
  std::vector<std::string> words;
  for (auto begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;
       begin = text.find_first_not_of(kBlanks, begin)) {
    const auto end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::optional<double> parse_number(std::string_view text) {
  const auto number = parse<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse<std::int64_t>(text);
}

std::optional<double> parse_quantity(std::string_view text, Dimension dimension) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto number = parse_number(text.substr(0, space));
  const auto factor = unit_factor(text.substr(space + 1), dimension);
  if (!number || !factor) return std::nullopt;
  const double value = *number * *factor;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> unit_ratio(std::string_view from, std::string_view to) {
  for (const Dimension dimension : {Dimension::time, Dimension::bytes, Dimension::bytes_per_second,
                                    Dimension::flops, Dimension::flops_per_second}) {
    const auto one = unit_factor(from, dimension), other = unit_factor(to, dimension);
    if (one && other) return *one / *other;
  }
  return std::nullopt;
}

namespace {

/// A unit, and how people write it, in small letters.
struct SpelledUnit {
  std::string unit;
  std::vector<std::string> spellings;
};

template <class Prefixes>
void add_spellings(const Prefixes& prefixes, std::string_view base,
                   const std::vector<std::string_view>& endings, std::vector<SpelledUnit>& units) {
  for (const Prefix& prefix : prefixes) {
    SpelledUnit one{std::string(prefix.text) + std::string(base), {}};
    for (const std::string_view ending : endings)
      one.spellings.push_back(lower(prefix.text) + std::string(ending));
    units.push_back(std::move(one));
  }
}

std::vector<SpelledUnit> spelled_units(Dimension dimension) {
  std::vector<SpelledUnit> units;
  switch (dimension) {
    case Dimension::time:
      return {{"s", {"s", "sec", "secs", "second", "seconds"}},
              {"ms", {"ms", "msec", "millisecond", "milliseconds"}},
              {"us", {"us", "usec", "microsecond", "microseconds"}},
              {"ns", {"ns", "nsec", "nanosecond", "nanoseconds"}},
              {"min", {"min", "mins", "minute", "minutes"}},
              {"h", {"h", "hr", "hrs", "hour", "hours"}}};
    case Dimension::bytes:
      add_spellings(kDecimal, "B", {"", "b", "byte", "bytes"}, units);
      add_spellings(kBinary, "B", {"", "b", "byte", "bytes"}, units);
      break;
    case Dimension::bytes_per_second:
      add_spellings(kDecimal, "bit/s", {"bit/s", "bits/s", "bit", "b/s", "bps"}, units);
      add_spellings(kDecimal, "B/s", {"byte/s", "bytes/s", "b/s", "bps"}, units);
      add_spellings(kBinary, "B/s", {"b/s", "bps"}, units);
      break;
    case Dimension::flops:
      add_spellings(kDecimal, "flop", {"flop", "flops"}, units);
      break;
    case Dimension::flops_per_second:
      add_spellings(kDecimal, "flop/s", {"flop/s", "flops/s", "flops", "flop"}, units);
      break;
  }
  return units;
}

/// The unit in small letters, without spaces before it and with u in place of the micro sign.
std::string plain_unit(std::string_view unit) {
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  std::string plain = lower(unit);
  for (const std::string_view micro : {"\xC2\xB5", "\xCE\xBC"}) {
    if (plain.starts_with(micro)) plain.replace(0, micro.size(), "u");
  }
  return plain;
}

/// Whether a spelled unit can mean this one: "Gb/s" and "gbps" are bits, "GBps" are bytes, "gb/s" is either.
bool can_mean(std::string_view spelled, const std::string& plain, const std::string& unit) {
  if (!plain.ends_with("b/s") && !plain.ends_with("bps")) return true;
  const bool capital = spelled.find('B') != std::string_view::npos;
  if (unit.ends_with("bit/s")) return !capital;
  return capital || (lower(spelled) == spelled && plain.ends_with("b/s"));
}

}  // namespace

std::string quantity_advice(std::string_view text, Dimension dimension) {
  if (text.size() > 60 || parse_quantity(text, dimension)) return "";
  std::size_t length = text.size();
  while (length > 0 && !parse_number(text.substr(0, length))) --length;
  const std::string_view number = text.substr(0, length), spelled = text.substr(length);
  const std::string plain = plain_unit(spelled);
  if (number.empty() || plain.empty()) return "";
  std::string advice;
  for (const SpelledUnit& one : spelled_units(dimension)) {
    if (std::ranges::find(one.spellings, plain) == one.spellings.end()) continue;
    if (!can_mean(spelled, plain, one.unit)) continue;
    advice += (advice.empty() ? "; did you mean \"" : " or \"") + std::string(number) + " " + one.unit + "\"";
  }
  return advice.empty() ? "" : advice + "?";
}

std::string_view example(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return "1.5 us";
    case Dimension::bytes:
      return "4 MiB";
    case Dimension::flops:
      return "8.2 Gflop";
    case Dimension::bytes_per_second:
      return "25 GB/s";
    case Dimension::flops_per_second:
      return "19.5 Tflop/s";
  }
  return "";
}

ValueRange valid_range(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return {0, 1e12, "up to 1e12 s"};
    case Dimension::bytes:
      return {0, 1e18, "up to 1e18 B"};
    case Dimension::bytes_per_second:
      return {1, 1e18, "from 1 B/s to 1e18 B/s"};
    case Dimension::flops:
      return {0, 1e30, "up to 1e30 flop"};
    case Dimension::flops_per_second:
      return {1, 1e30, "from 1 flop/s to 1e30 flop/s"};
  }
  return {};
}

namespace {

/// The time of now in UTC, in a form of strftime (fmt/chrono.h does the same, but takes a second to compile).
std::string utc_text(const char* form) {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  gmtime_r(&now, &fields);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), form, &fields)};
}

}  // namespace

std::string today() {
  return utc_text("%Y-%m-%d");
}

std::string date_and_time() {
  return utc_text("%Y-%m-%dT%H:%M:%SZ");
}

}  // namespace stepcast
