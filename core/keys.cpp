#include "core/keys.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast {

std::vector<std::string> names_of(const Keys& keys) {
  std::vector<std::string> names;
  for (const Key& key : keys) names.push_back(key.name);
  return names;
}

Keys joined_keys(const std::vector<Keys>& lists) {
  Keys all;
  for (const Keys& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Keys keys_named(const Keys& keys, const std::vector<std::string>& names) {
  Keys named;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(keys, name, &Key::name);
    if (found == keys.end()) throw std::out_of_range("keys_named: no key " + name);
    named.push_back(*found);
  }
  return named;
}

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const auto comma = list.find(", ");
    words.emplace_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? "" : list.substr(comma + 2);
  }
  return words;
}

std::vector<std::string> types_of(const Key& key) {
  std::vector<std::string> types = words_of(key.type);
  if (types.empty()) return types;
  const auto last = types.back().find(" or ");
  if (last == std::string::npos) return types;
  const std::string other = types.back().substr(last + 4);
  types.back().resize(last);
  types.push_back(other);
  return types;
}

Keys keys_of_kind(const Keys& keys, std::string_view kind) {
  Keys chosen;
  for (const Key& key : keys) {
    const auto kinds = words_of(key.only_with);
    if (kinds.empty() || std::ranges::find(kinds, kind) != kinds.end()) chosen.push_back(key);
  }
  return chosen;
}

Key renamed(Key key, const std::string& former_name) {
  key.former_name = former_name;
  return key;
}

Keys only_with(const std::string& kinds, Keys keys) {
  for (Key& key : keys) key.only_with = kinds;
  return keys;
}

Keys with_sources(Keys keys, Key::Source source) {
  static const std::vector<std::string> sourced{"integer", "number",    "time",
                                                "bytes",   "bandwidth", "work rate"};
  for (Key& key : keys) {
    if (std::ranges::find(sourced, key.type) != sourced.end()) key.source = source;
  }
  return keys;
}

namespace {

void refuse_former_names(const YamlValue& value, const Keys& keys) {
  if (!value.is(YamlNode::Kind::mapping)) return;
  for (const auto& [name, child] : value.any_map().entries()) {
    const auto key = std::ranges::find(keys, name, &Key::former_name);
    if (key != keys.end()) child.refuse("unknown key; did you mean \"" + key->name + "\"?");
  }
}

}  // namespace

YamlMap read_map(const YamlValue& value, const Keys& keys) {
  refuse_former_names(value, keys);
  return value.map(names_of(keys));
}

YamlMap read_map(const YamlValue& value, const Keys& keys, std::string_view kind) {
  return read_map(value, keys_of_kind(keys, kind));
}

namespace {

void add_paths(const Keys& keys, const std::string& prefix, std::vector<std::string>& paths) {
  for (const Key& key : keys) {
    const std::string path = prefix + key.name;
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    if (key.type.starts_with("list")) continue;
    if (key.inside != nullptr) add_paths(key.inside(), path + ".", paths);
    if (key.by_kind == nullptr) continue;
    for (const KindKeys& one : key.by_kind()) add_paths(one.keys, path + ".", paths);
  }
}

}  // namespace

std::vector<std::string> key_paths(const Keys& keys) {
  std::vector<std::string> paths;
  add_paths(keys, "", paths);
  return paths;
}

}  // namespace stepcast
