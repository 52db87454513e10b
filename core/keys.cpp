#include "core/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>

#include "core/text.hpp"

namespace stepcast {
namespace {

/// The same for as long as the program runs.
template <class T>
const T& lasting_value(const T& value) {
  static std::mutex mutex;
  static std::set<T> all;
  const std::lock_guard lock(mutex);
  return *all.insert(value).first;
}

void refuse_former_names(const YamlValue& value, const Keys& keys) {
  if (!value.is(YamlNode::Kind::mapping)) return;
  for (const auto& [name, child] : value.any_map().entries()) {
    const auto key = std::ranges::find(keys, name, &Key::former_name);
    if (key != keys.end()) child.refuse(fmt::format("unknown key; did you mean \"{}\"?", key->name));
  }
}

void add_keys(const Keys& keys, const std::string& prefix, std::vector<std::pair<std::string, Key>>& all) {
  for (const Key& key : keys) {
    const std::string path = prefix + std::string(key.name);
    all.emplace_back(path, key);
    if (is_list(key.allowed.types().front())) continue;
    if (key.inside != nullptr) add_keys(key.inside(), path + ".", all);
    if (key.by_kind == nullptr) continue;
    for (const KindKeys& one : key.by_kind()) add_keys(one.keys, path + ".", all);
  }
}

}  // namespace

std::vector<std::string> names_of(const Keys& keys) {
  std::vector<std::string> names;
  for (const Key& key : keys) names.emplace_back(key.name);
  return names;
}

const Key* find_key(const Keys& keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, &Key::name);
  return found == keys.end() ? nullptr : &*found;
}

Keys joined_keys(const std::vector<Keys>& lists) {
  Keys all;
  for (const Keys& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Keys keys_named(const Keys& keys, const std::vector<std::string>& names) {
  Keys named;
  for (const std::string& name : names) {
    const Key* found = find_key(keys, name);
    if (found == nullptr) throw std::out_of_range("keys_named: no key " + name);
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

std::string_view lasting(const std::string& text) {
  return lasting_value(text);
}

Allowed::Allowed(const std::vector<KeyType>& types, NumberRange range, const std::vector<std::string>& words,
                 std::string_view in_words)
    : numbers(range), rule(in_words), types_(&lasting_value(types)), words_(&lasting_value(words)) {}

bool is_of_kind(const Key& key, std::string_view kind) {
  const auto kinds = words_of(key.only_with);
  return kinds.empty() || std::ranges::find(kinds, kind) != kinds.end();
}

Keys keys_of_kind(const Keys& keys, std::string_view kind) {
  Keys chosen;
  std::ranges::copy_if(keys, std::back_inserter(chosen),
                       [kind](const Key& key) { return is_of_kind(key, kind); });
  return chosen;
}

Key renamed(Key key, std::string_view former_name) {
  key.former_name = former_name;
  return key;
}

Keys only_with(std::string_view kinds, Keys keys) {
  for (Key& key : keys) key.only_with = kinds;
  return keys;
}

Keys with_sources(Keys keys, Key::Source source) {
  using enum KeyType;
  for (Key& key : keys) {
    for (const KeyType sourced : {integer, number, time, bytes, bandwidth, work_rate})
      if (key.allowed.is(sourced)) key.source = source;
  }
  return keys;
}

YamlMap read_map(const YamlValue& value, const Keys& keys) {
  refuse_former_names(value, keys);
  return value.map(names_of(keys));
}

YamlMap read_map(const YamlValue& value, const Keys& keys, std::string_view kind) {
  return read_map(value, keys_of_kind(keys, kind));
}

std::vector<std::string> kinds_of(const Key& key) {
  std::vector<std::string> kinds;
  for (const KindKeys& one : key.by_kind()) kinds.push_back(one.kind);
  return kinds;
}

YamlMap map_with_kind(const YamlValue& value, const std::vector<std::string>& kinds) {
  const std::string nearest = nearest_word(value.node().text, kinds);
  return value.any_map(fmt::format("{{kind: {}}}", nearest.empty() ? kinds.front() : nearest));
}

std::vector<std::pair<std::string, Key>> keys_with_paths(const Keys& keys) {
  std::vector<std::pair<std::string, Key>> all;
  add_keys(keys, "", all);
  return all;
}

std::vector<std::string> key_paths(const Keys& keys) {
  std::vector<std::string> paths;
  for (const auto& [path, key] : keys_with_paths(keys)) {
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  }
  return paths;
}

}  // namespace stepcast
