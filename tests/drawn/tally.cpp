#include "tests/drawn/tally.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

namespace stepcast::drawn {

void Tally::take(const CaseResult& result) {
  refused_ += result.refused();
  other_size_ += result.other_size;
  if (result.strategy.empty()) return;
  ++cases_;
  ++strategies_[result.strategy];
  ++platforms_[result.platform];
  for (const Finding& finding : result.findings) take(finding, result.number);
}

void Tally::take(const Finding& finding, std::uint32_t number) {
  OfLaw& law = laws_[finding.law];
  ++law.cases;
  law.broken += finding.broken() ? 1 : 0;
  broken_ += finding.broken() ? 1 : 0;
  if (finding.difference > law.largest) law.number = number;
  law.largest = std::max(law.largest, finding.difference);
  law.bound = std::max(law.bound, finding.bound);
}

void Tally::write_csv(const std::filesystem::path& file) const {
  std::ofstream out(file);
  out << "kind,name,count,broken,bound,largest_difference,case\n";
  out << fmt::format("all,cases,{},{},,,\nall,refused,{},,,,\nall,other size,{},,,,\n", cases_, broken_,
                     refused_, other_size_);
  for (const auto& [name, law] : laws_)
    out << fmt::format("law,\"{}\",{},{},{},{:.3g},{}\n", name, law.cases, law.broken,
                       std::isfinite(law.bound) ? fmt::format("{:g}", law.bound) : "", law.largest,
                       law.number);
  for (const auto& [name, count] : strategies_) out << fmt::format("strategy,{},{},,,,\n", name, count);
  for (const auto& [name, count] : platforms_) out << fmt::format("platform,{},{},,,,\n", name, count);
}

std::string Tally::text() const {
  std::string text = fmt::format("{} cases, and {} scenarios that were refused and {} of another size\n",
                                 cases_, refused_, other_size_);
  for (const auto& [name, law] : laws_)
    text += fmt::format("{:28} {:7} times, {:4} broken, largest difference {:.3g} (case {}), bound {:g}\n",
                        name, law.cases, law.broken, law.largest, law.number, law.bound);
  return text;
}

}  // namespace stepcast::drawn
