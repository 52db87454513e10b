#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// The unit or format in which a column of results is printed.
enum class Show {
  as_is,
  seconds,           ///< in the unit of the step time
  whole_seconds,     ///< in s, whatever the unit of the step time
  seconds_as_hours,  ///< in h
  minutes,
  hours,
  bytes,
  samples_rate,
  rate,
  ratio,
  percent,
  yes_no
};

struct ShownColumn {
  std::string column;
  std::string header;
  Show show;
};

/// The columns of the table that every run prints.
const std::vector<ShownColumn>& default_columns();

/// The columns of the second table, which only some strategies and trainings with faults have.
const std::vector<ShownColumn>& own_columns();

}  // namespace stepcast
