#include "commands/search/best_probabilities.hpp"

#include <cmath>

#include "commands/run/best_alternatives.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/posterior.hpp"

namespace stepcast {

std::vector<double> best_probabilities(const std::vector<std::vector<double>>& merits, double own) {
  std::vector<double> probabilities(merits.size());
  const std::size_t draws = merits.front().size();
  const double each = 1 / static_cast<double>(draws * kDiscrepancySamples);
  for (std::size_t draw = 0; draw < draws; ++draw) {
    for (unsigned sample = 0; sample < kDiscrepancySamples; ++sample) {
      std::size_t best = 0;
      double most = -1;
      for (std::size_t i = 0; i < merits.size(); ++i) {
        const double merit = merits[i][draw] * std::exp(own * normal_sample(sample, i));
        if (merit <= most) continue;
        most = merit;
        best = i;
      }
      probabilities[best] += each;
    }
  }
  return probabilities;
}

std::string told_apart_line(const std::vector<std::string>& names, const std::vector<double>& probabilities) {
  Results settings;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Row row;
    row.set("point", names[i]);
    row.set("best_probability", probabilities[i]);
    settings.rows.push_back(std::move(row));
  }
  return equal_choices(settings).front();
}

}  // namespace stepcast
