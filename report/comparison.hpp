#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/published.hpp"

namespace stepcast {

/// Statistics of |error|, each a fraction.
struct ErrorSummary {
  std::size_t count = 0;
  double mean = 0;
  double median = 0;
  double p90 = 0;  ///< 90th percentile
  double maximum = 0;
};

/// Of signed errors. All zero without any.
ErrorSummary summarized(const std::vector<double>& errors);

/// Of the rows of kind `predicted`; the others were fitted or carry no error.
struct PublishedSummary {
  ErrorSummary error;
  ErrorSummary ideal_scaling;  ///< what ideal scaling would have missed by, on rows where it says anything
  ErrorSummary by_experiment;  ///< one number a scenario: the median |error| of its rows
  ErrorSummary ideal_by_experiment;  ///< the same of ideal scaling
  std::size_t with_interval = 0;     ///< rows that have a forecast interval
  std::size_t inside_interval = 0;   ///< of these, rows whose published value lies inside
};

PublishedSummary summarized(const std::vector<PublishedRow>& rows);

/// One line for the terminal: "4 predicted figures: |error| median 2.1 %, ...". Says so when there is none.
std::string to_string(const PublishedSummary& summary);

}  // namespace stepcast
