// Changes of YAML, JSON and XML that keep their form: half of all. The others, byte by byte, are libFuzzer's
// own.
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

struct Piece {
  std::size_t begin, length;
};

constexpr std::array<std::string_view, 20> kValues{
    "0",     "-1",         "1",          "2",          "3",
    "65536", "2147483647", "2147483648", "1000000000", "9223372036854775807",
    "1e300", "1e-300",     "0.5",        "1.5",        "[]",
    "{}",    "true",       "''",         "1e18",       "derived"};

/// True if a value begins at this place: after ": ", ", ", "[", "- ", or `":`, as in JSON without blanks.
bool begins_value(std::string_view text, std::size_t at) {
  const char before = text[at - 1], earlier = at > 1 ? text[at - 2] : '\0';
  return before == '[' || (before == ' ' && earlier != '\0' && std::strchr(":,-", earlier) != nullptr) ||
         (before == ':' && earlier == '"');
}

/// The values of a text, each up to its next end. Those of XML stand in quotes after "=".
std::vector<Piece> values_of(std::string_view text) {
  std::vector<Piece> values;
  for (std::size_t at = 1; at < text.size(); ++at) {
    const bool attribute = at > 1 && text[at - 1] == '"' && text[at - 2] == '=';
    if (!attribute && !begins_value(text, at)) continue;
    const std::size_t end = std::min(text.find_first_of(attribute ? "\"" : ",]}\n", at), text.size());
    if (end > at) values.push_back({at, end - at});
  }
  return values;
}

/// The number of a value: 25 of "25 GB/s", so that the unit stays.
Piece number_in(std::string_view text, Piece value) {
  const std::size_t digits = text.substr(value.begin, value.length).find_first_not_of("0123456789.-eE");
  return {value.begin, digits == std::string_view::npos || digits == 0 ? value.length : digits};
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  std::minstd_rand random(seed);
  std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<Piece> values = values_of(text);
  if (values.empty() || random() % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
    const Piece value = values[random() % values.size()], other = values[random() % values.size()];
    if (value.begin + value.length > text.size() || other.begin + other.length > text.size()) break;
    const std::string with(random() % 3 == 0 ? std::string_view(text).substr(other.begin, other.length)
                                             : kValues[random() % kValues.size()]);
    const Piece old = random() % 2 == 0 ? value : number_in(text, value);
    text.replace(old.begin, old.length, with);
  }
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
