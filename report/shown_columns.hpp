#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// How a column of results is printed.
enum class Show {
  as_is,
  seconds,           ///< in the unit of the step
  whole_seconds,     ///< in s, whatever the step's unit
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

/// Of the table that every run prints.
const std::vector<ShownColumn>& default_columns();

/// Of the second table: what only some strategies, and trainings with faults, have.
const std::vector<ShownColumn>& own_columns();

}  // namespace stepcast
