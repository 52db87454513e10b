#pragma once

#include <cstdint>
#include <string>

#include "core/yaml.hpp"

namespace stepcast::drawn {

/// Whether a case has many workers and many messages. Few have, because they take most of the time.
inline bool is_large(std::uint32_t number) {
  return number % 64 == 63;
}

/// What a case is drawn from.
struct DrawnFrom {
  std::uint64_t seed = 1;
  std::string only;  ///< a strategy or a platform that every case has; empty: any
};

/// The scenario of a case as YAML text, which `stepcast run` reads. Every key of a strategy comes from the
/// table of its keys, so a new strategy or key is drawn without a change here. The reader may refuse the
/// scenario.
/// @param attempt  number of scenarios of this case that were refused
std::string drawn_scenario(const DrawnFrom& from, std::uint32_t number, std::uint32_t attempt);

/// Names of the shipped platforms.
std::vector<std::string> shipped_platforms();

}  // namespace stepcast::drawn
