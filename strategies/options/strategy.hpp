#pragma once

#include <string>
#include <vector>

#include "core/keys.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// A strategy as the registry lists it (strategies/registry.hpp). Plain data.
struct Strategy {
  std::string kind;    ///< `strategy: {kind: ...}`
  std::string what;    ///< one plain line
  std::string source;  ///< the paper
  /// Reads the mapping `strategy:` and makes the plan. @throws InputError
  Plan (*plan)(const YamlValue& options, const Setting& setting);
  Keys keys;
  std::string example;        ///< the mapping `strategy:` as YAML text, with all required keys
  std::string example_model;  ///< a model of models/ that the example can train
};

}  // namespace stepcast
