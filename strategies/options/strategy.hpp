#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// A key that a strategy accepts under `strategy:`. Readers, `stepcast show strategies KIND` and tests use
/// the same table.
struct StrategyKey {
  std::string name;
  std::string type;           ///< "integer", "number", "time", "bytes", "bandwidth", "boolean", "name" ...
  std::string range;          ///< "1 to 64", ">= 0", "f32, mixed"; empty where the type says all
  std::string default_value;  ///< YAML text; "required" or "none" where there is no default value
  std::string meaning;        ///< one plain line
};
using StrategyKeys = std::vector<StrategyKey>;

/// A strategy as the registry lists it (strategies/registry.hpp). Plain data.
struct Strategy {
  std::string kind;    ///< `strategy: {kind: ...}`
  std::string what;    ///< one plain line
  std::string source;  ///< the paper
  /// Reads the mapping `strategy:` and makes the plan. @throws InputError
  Plan (*plan)(const YamlValue& options, const Setting& setting);
  StrategyKeys keys;
  std::string example;        ///< the mapping `strategy:` as YAML text, with all required keys
  std::string example_model;  ///< a model of models/ that the example can train
};

/// All lists in one, in order.
StrategyKeys joined_keys(const std::vector<StrategyKeys>& lists);

/// Those of `keys` that have these names, in this order.
/// @throws std::out_of_range for a name that is not there
StrategyKeys keys_named(const StrategyKeys& keys, const std::vector<std::string>& names);

/// The mapping `strategy:`, which may have these keys and no others. @throws InputError
YamlMap strategy_map(const YamlValue& value, const StrategyKeys& keys);

}  // namespace stepcast
