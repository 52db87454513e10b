#pragma once

#include <functional>
#include <string>

#include "tests/drawn/drawn_scenario.hpp"
#include "tests/drawn/laws.hpp"

namespace stepcast::drawn {

/// A case after all laws have been checked.
struct CaseResult {
  std::uint32_t number = 0, attempt = 0;  ///< of the scenario that was checked
  int other_size = 0;                     ///< earlier attempts that had too many messages, or too few
  std::string strategy = {}, platform = {};
  int workers = 0;
  std::string scenario = {};  ///< its text; empty: no attempt was accepted
  double whole = 0;           ///< the run [s]
  Findings findings = {};

  int refused() const { return attempt - other_size; }
};

/// Draws scenarios until one is accepted, and checks all laws with it. An exception of the simulator breaks
/// the law "fault".
/// @param starts  receives the scenario before anything is simulated
CaseResult check_case(const DrawnFrom& from, std::uint32_t number,
                      const std::function<void(const std::string&)>& starts);

/// The findings of one of laws(), and what it threw.
Findings findings_of(const Law& law, Trial& trial);

/// The duration of the run of an accepted scenario [s].
double whole_of(const DrawnFrom& from, std::uint32_t number, std::uint32_t attempt);

/// The shortest scenario that breaks the same law, found by removing keys one after the other.
YamlNode minimized(YamlNode scenario, const Law& law, const std::string& broken);

// Results as text, to travel from a child process.
std::string to_text(const CaseResult& result);
CaseResult read_case(const std::string& text);

}  // namespace stepcast::drawn
