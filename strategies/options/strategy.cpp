#include "strategies/options/strategy.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast {

StrategyKeys joined_keys(const std::vector<StrategyKeys>& lists) {
  StrategyKeys all;
  for (const StrategyKeys& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

StrategyKeys keys_named(const StrategyKeys& keys, const std::vector<std::string>& names) {
  StrategyKeys named;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(keys, name, &StrategyKey::name);
    if (found == keys.end()) throw std::out_of_range("keys_named: no key " + name);
    named.push_back(*found);
  }
  return named;
}

YamlMap strategy_map(const YamlValue& value, const StrategyKeys& keys) {
  std::vector<std::string> names;
  for (const StrategyKey& key : keys) names.push_back(key.name);
  return value.map(std::move(names));
}

}  // namespace stepcast
