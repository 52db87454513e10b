#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/drawn/case_check.hpp"

namespace stepcast::drawn {

/// Counts of all cases, and the largest difference of each law.
class Tally {
 public:
  void take(const CaseResult& result);
  void take(const Finding& finding, std::uint32_t number);  ///< @param number  of the case

  int broken() const { return broken_; }
  void write_csv(const std::filesystem::path& file) const;
  std::string text() const;  ///< the same as a table

 private:
  struct OfLaw {
    int cases = 0, broken = 0;
    double largest = 0, bound = 0;
    std::uint32_t number = 0;  ///< case with the largest difference
  };

  std::map<std::string, OfLaw> laws_;
  std::map<std::string, int> strategies_, platforms_;
  int cases_ = 0, refused_ = 0, other_size_ = 0, broken_ = 0;
};

}  // namespace stepcast::drawn
