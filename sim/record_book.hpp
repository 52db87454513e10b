#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategies/plan.hpp"

namespace stepcast {

/// What the programs of a run record, in order, and how much of it there was when a program ended its last
/// step. No date is kept a record: a run with servers makes millions.
class RecordBook {
 public:
  /// @param now  never earlier than before
  void add(const char* name, double value, double now) {
    if (now > last_end_) close();
    list(name).push_back(value);
  }

  /// A program ended a step; all that is recorded at this date counts as before it.
  void step_ended(std::size_t program, double now);

  /// How many records of each name were there when this program had ended its last step.
  std::map<std::string, std::size_t> counts_at_end(std::size_t program);

  Records take() { return std::move(records_); }

 private:
  /// The list of a name. The same text mostly comes from the same place, which is found without comparing it.
  std::vector<double>& list(const char* name) {
    for (const auto& [known, values] : lists_) {
      if (known == name) return *values;
    }
    return *lists_.emplace_back(name, &records_[name]).second;
  }
  void close();

  Records records_;
  std::vector<std::pair<const char*, std::vector<double>*>> lists_;
  std::vector<std::vector<std::size_t>> counts_;  ///< of each program those of lists_ at its last step
  std::vector<std::size_t> ended_;                ///< programs that ended a step at last_end_, counts to come
  double last_end_ = std::numeric_limits<double>::infinity();
};

/// The first records of each name. @param counts  so many; of names that are not there all
Records first_records(Records records, const std::map<std::string, std::size_t>& counts);

}  // namespace stepcast
