#include "core/nearest.hpp"

#include <algorithm>
#include <numeric>

namespace stepcast {
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

}  // namespace

std::string nearest_word(std::string_view text, const std::vector<std::string>& words) {
  text = text.substr(0, 100);
  std::string best;
  std::size_t least = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& word : words) {
    const std::size_t distance = edit_distance(text, word);
    if (distance < least && distance < word.size()) {
      least = distance;
      best = word;
    }
  }
  if (best.empty() && text.size() > 2) {
    const auto begun = std::ranges::find_if(words, [&](const auto& word) { return word.starts_with(text); });
    if (begun != words.end()) best = *begun;
  }
  return best;
}

}  // namespace stepcast
