#include "sim/workers/record_book.hpp"

namespace stepcast {

void RecordBook::step_ended(std::size_t program, double now) {
  if (now > last_end_) close();
  last_end_ = now;
  ended_.push_back(program);
}

/// Stores the counts of the programs that ended a step at last_end_: that date is over, so no record can
/// follow.
void RecordBook::close() {
  for (const std::size_t program : ended_) {
    if (program >= counts_.size()) counts_.resize(program + 1);
    std::vector<std::size_t>& counts = counts_[program];
    counts.clear();
    for (const auto& [name, values] : lists_) counts.push_back(values->size());
  }
  ended_.clear();
  last_end_ = std::numeric_limits<double>::infinity();
}

std::map<std::string, std::size_t> RecordBook::counts_at_end(std::size_t program) {
  close();
  std::map<std::string, std::size_t> counts;
  for (const auto& [name, values] : records_) counts[name] = 0;
  if (program >= counts_.size()) return counts;
  for (std::size_t i = 0; i < counts_[program].size(); ++i) counts[lists_[i].first] = counts_[program][i];
  return counts;
}

Records first_records(Records records, const std::map<std::string, std::size_t>& counts) {
  for (const auto& [name, count] : counts) {
    const auto found = records.find(name);
    if (found != records.end() && count < found->second.size()) found->second.resize(count);
  }
  return records;
}

}  // namespace stepcast
