#pragma once

#include <string>
#include <vector>

#include "tests/drawn/trial.hpp"

namespace stepcast::drawn {

/// What a law found out about a scenario.
struct Finding {
  std::string law = {};
  double value = 0;          ///< [s]
  double reference = 0;      ///< [s]
  double difference = 0;     ///< of both, as a share of the reference; 0 on the side that is allowed
  double bound = 0;          ///< largest allowed difference; infinite: none is claimed
  std::string forms = {};    ///< what both values are
  std::string command = {};  ///< options of `stepcast run` that give the value, and after "|" the reference

  bool broken() const { return !(difference <= bound); }
};

using Findings = std::vector<Finding>;

/// A property that every scenario has. @throws what simulate() throws
struct Law {
  const char* name;
  void (*check)(Trial& trial, Findings& findings);
  bool of_large = false;  ///< checked with large trials too
};

const std::vector<Law>& laws();

}  // namespace stepcast::drawn
