#include "report/schema/json_schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace stepcast {
namespace {

using SchemaJson = nlohmann::ordered_json;

constexpr auto kNumber = R"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)";

SchemaJson quantity(const std::string& units) {
  return {{"type", "string"}, {"pattern", fmt::format("^{} ({})$", kNumber, units)}};
}

constexpr auto kBytes = "B|[kMGTP]B|[KMGT]iB";

/// The schema of a type without keys of its own.
SchemaJson scalar(const Key& key, KeyType type) {
  if (type == KeyType::integer || type == KeyType::number) {
    SchemaJson schema{{"type", type == KeyType::integer ? "integer" : "number"}};
    const NumberRange& range = key.allowed.numbers;
    if (range.low > -1e300) schema[range.without_low ? "exclusiveMinimum" : "minimum"] = range.low;
    if (range.high < 1e300) schema[range.without_high ? "exclusiveMaximum" : "maximum"] = range.high;
    return schema;
  }
  if (type == KeyType::boolean) return {{"type", "boolean"}};
  if (type == KeyType::time) return quantity("s|ms|us|ns|min|h");
  if (type == KeyType::bytes) return quantity(kBytes);
  if (type == KeyType::bandwidth) return quantity(fmt::format("({}|[kMGTP]?bit)/s", kBytes));
  if (type == KeyType::work_rate) return quantity("[kMGTP]?flop/s");
  if (type == KeyType::name && !key.allowed.words().empty()) return {{"enum", key.allowed.words()}};
  if (type == KeyType::value) return {{"type", {"string", "number", "boolean", "array", "object"}}};
  return {{"type", {"string", "number", "boolean"}}};  // a name or a text; YAML reads 2 as a number
}

/// The words that a value may be; null: it may be something else, too.
SchemaJson words_of_value(const Key& key) {
  if (key.allowed.is(KeyType::boolean)) return {true, false};
  if (key.allowed.is(KeyType::name) && !key.allowed.words().empty()) return key.allowed.words();
  return nullptr;
}

/// For each path, the words that its value may be, of all kinds of the mapping; null: something else, too.
std::map<std::string, SchemaJson> words_by_path(const Keys& top) {
  std::map<std::string, SchemaJson> all;
  std::map<std::string, SchemaJson> kinds;  // by path
  for (const auto& [path, key] : keys_with_paths(top)) {
    if (key.by_kind != nullptr) kinds[path + ".kind"] = kinds_of(key);
    const SchemaJson words = words_of_value(key);
    const auto [known, is_new] = all.try_emplace(path, words);
    if (words.is_null()) known->second = nullptr;
    if (is_new || known->second.is_null()) continue;
    for (const SchemaJson& word : words) {
      if (std::ranges::find(known->second, word) == known->second.end()) known->second.push_back(word);
    }
  }
  for (const auto& [path, words] : kinds) all[path] = words;
  return all;
}

SchemaJson swept_values() {
  SchemaJson range{{"type", "object"}, {"additionalProperties", false}, {"required", {"from", "to"}}};
  for (const char* name : {"from", "to", "times", "step"}) range["properties"][name] = {{"type", "integer"}};
  const SchemaJson doubled{{"type", "string"}, {"pattern", R"(^[0-9]+\.\.[0-9]+$)"}};
  return {{"anyOf", {SchemaJson{{"type", "array"}, {"minItems", 1}}, range, doubled}}};
}

class SchemaWriter {
 public:
  explicit SchemaWriter(const Keys& top) : paths_(key_paths(top)), words_(words_by_path(top)) {}

  /// The schema of a mapping with these keys.
  SchemaJson object(const Keys& keys, bool complete) {
    SchemaJson schema{
        {"type", "object"}, {"properties", SchemaJson::object()}, {"additionalProperties", false}};
    bool kinds = false;
    for (const Key& key : keys) {
      SchemaJson& property = schema["properties"][std::string(key.name)];
      SchemaJson one = value(key, complete);  // kinds may have different keys of one name
      property = property.is_null() || property == one ? one : SchemaJson{{"anyOf", {property, one}}};
      kinds = kinds || !key.only_with.empty();
    }
    if (complete) require(keys_of_kind(keys, ""), schema);
    if (kinds) schema["allOf"] = by_kind(keys, complete);
    return schema;
  }

  SchemaJson definitions = SchemaJson::object();

 private:
  static void require(const Keys& keys, SchemaJson& schema) {
    SchemaJson required = SchemaJson::array();
    for (const Key& key : keys) {
      if (key.default_value == "required") required.push_back(key.name);
    }
    if (!required.empty()) schema["required"] = required;
  }

  static SchemaJson of_kind(const std::string& kind) {
    return {{"properties", {{"kind", {{"const", kind}}}}}, {"required", {"kind"}}};
  }

  /// For each kind: which keys there are.
  static SchemaJson by_kind(const Keys& keys, bool complete) {
    SchemaJson cases = SchemaJson::array();
    for (const std::string& word : find_key(keys, "kind")->allowed.words()) {
      const Keys own = keys_of_kind(keys, word);
      SchemaJson then{{"propertyNames", {{"enum", names_of(own)}}}};
      if (complete) require(own, then);
      cases.push_back({{"if", of_kind(word)}, {"then", then}});
    }
    return cases;
  }

  /// A reference to the schema of a mapping, which is defined at its first use.
  SchemaJson reference(const Key& key, bool complete) {
    const auto [place, first] = names_.try_emplace({&key.inside(), complete}, "");
    if (first) {
      std::string name(key.name);
      for (int count = 2; definitions.contains(name); ++count) name = fmt::format("{}_{}", key.name, count);
      place->second = name;
      definitions[name] = nullptr;
      const SchemaJson schema = object(key.inside(), complete);
      definitions[name] = schema;
    }
    return {{"$ref", "#/definitions/" + names_.at({&key.inside(), complete})}};
  }

  SchemaJson of_strategies(const Key& key, bool complete) {
    SchemaJson cases = SchemaJson::array();
    std::vector<std::string> names;
    for (const KindKeys& one : key.by_kind()) {
      for (const std::string& own : names_of(one.keys)) {
        if (std::ranges::find(names, own) == names.end()) names.push_back(own);
      }
      const std::string name = fmt::format("{}_{}", key.name, one.kind);
      definitions[name] = object(one.keys, complete);
      cases.push_back({{"if", of_kind(one.kind)}, {"then", {{"$ref", "#/definitions/" + name}}}});
    }
    // Without a kind, which the sweep or a software stack then gives, it has keys of any kind.
    return {{"type", "object"},
            {"properties", {{"kind", {{"enum", kinds_of(key)}}}}},
            {"propertyNames", {{"enum", names}}},
            {"allOf", cases}};
  }

  /// A mapping whose keys are paths into the scenario. Editors complete the paths that are known.
  /// @param one_of  the schema of a value that has to be one of these words
  SchemaJson paths(const SchemaJson& value, SchemaJson (*one_of)(SchemaJson words)) const {
    SchemaJson schema{
        {"type", "object"}, {"properties", SchemaJson::object()}, {"additionalProperties", value}};
    for (const std::string& path : paths_) {
      const SchemaJson& words = words_.at(path);
      schema["properties"][path] = words.is_null() ? value : one_of(words);
    }
    return schema;
  }

  SchemaJson define(const std::string& name, const SchemaJson& schema) {
    definitions[name] = schema;
    return {{"$ref", "#/definitions/" + name}};
  }

  SchemaJson sweep() {
    SchemaJson product = paths(define("swept_values", swept_values()), [](SchemaJson words) {
      return SchemaJson{{"type", "array"}, {"minItems", 1}, {"items", {{"enum", std::move(words)}}}};
    });
    const SchemaJson points{{"type", "array"}, {"items", paths_of_values()}};
    for (const char* name : {"include", "exclude"}) product["properties"][name] = points;
    const SchemaJson one = define("sweep_product", product);
    return {{"anyOf", {one, SchemaJson{{"type", "array"}, {"items", one}}}}};
  }

  SchemaJson paths_of_values() {
    return define("values", paths(SchemaJson::object(), [](SchemaJson words) {
                    words.push_back(nullptr);  // removes the key
                    return SchemaJson{{"enum", std::move(words)}};
                  }));
  }

  SchemaJson alternative(const Key& key, KeyType type, bool complete) {
    if (type == KeyType::mapping && key.by_kind != nullptr) return of_strategies(key, complete);
    if (type == KeyType::mapping && key.inside != nullptr) return reference(key, complete);
    if (type == KeyType::mapping) return {{"type", "object"}};
    if (type == KeyType::settings) return paths_of_values();
    if (type == KeyType::sweep) return sweep();
    if (!is_list(type)) return scalar(key, type);
    SchemaJson list{{"type", "array"}};
    if (key.inside != nullptr && type == KeyType::mappings) {
      list["items"] = reference(key, true);
    } else if (type == KeyType::integers || type == KeyType::numbers) {
      list["items"] = scalar(key, item_of(type));
    }
    return list;
  }

  SchemaJson value(const Key& key, bool complete) {
    std::vector<SchemaJson> all;
    for (const KeyType type : key.allowed.types()) {
      SchemaJson one = alternative(key, type, complete);
      if (std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
    }
    if (key.source == Key::Source::must) all.clear();
    if (key.source != Key::Source::no) {
      SchemaJson required{"value"};
      if (key.source == Key::Source::must) required.push_back("source");
      all.push_back(
          {{"type", "object"},
           {"properties",
            {{"value", scalar(key, key.allowed.types().front())}, {"source", {{"type", "string"}}}}},
           {"required", required},
           {"additionalProperties", false}});
    }
    SchemaJson schema{{"description", description(key)}};
    if (all.size() == 1 && !all.front().contains("$ref")) {
      schema.update(all.front());
    } else {
      schema["anyOf"] = all;
    }
    return schema;
  }

  static std::string description(const Key& key) {
    return fmt::format("{} ({}; {}{})", key.meaning, allowed_text(key.allowed),
                       key.default_value.starts_with("required") ? "" : "default: ", key.default_value);
  }

  std::vector<std::string> paths_;
  std::map<std::string, SchemaJson> words_;
  std::map<std::pair<const Keys*, bool>, std::string> names_;
};

/// JSON text with a line for each member, and for each member of `properties` and `definitions`.
std::string in_lines(const SchemaJson& object, const std::string& indent) {
  std::string text;
  for (const auto& [name, value] : object.items()) {
    const bool inner = indent.size() == 1 && (name == "properties" || name == "definitions");
    text += fmt::format(
        "{}{}\"{}\": {}", text.empty() ? "" : ",\n", indent, name,
        inner ? fmt::format("{{\n{}\n{}}}", in_lines(value, indent + " "), indent) : value.dump());
  }
  return text;
}

}  // namespace

std::string json_schema(const std::string& title, const Keys& keys, Required required) {
  SchemaWriter writer(keys);
  SchemaJson schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  schema.update(writer.object(keys, required == Required::all));
  schema["definitions"] = writer.definitions;
  return "{\n" + in_lines(schema, " ") + "\n}\n";
}

namespace {

/// Text of a cell, in which "|" would end the cell.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, "\\");
  return text;
}

std::string code(const std::string& text) {
  return "`" + text + "`";
}

std::string type_cell(const Key& key) {
  const bool words = !key.allowed.words().empty(), name = key.allowed.is(KeyType::name);
  std::string type = types_text(key.allowed), range = range_text(key.allowed, "`");
  if (name) return words ? range : type;
  if (range.empty()) return type;
  return type + (words ? ": " : range.starts_with('>') ? " " : ", ") + range;
}

/// A default that is YAML text is marked as code; a phrase is not.
std::string default_cell(const Key& key) {
  std::string text(key.default_value);
  const auto is = [&](const char* word) { return text == word; };
  const std::vector<std::string>& words = key.allowed.words();
  if (std::ranges::find(words, text) != words.end()) return code(text);
  const bool phrase =
      text.starts_with("required") || is("none") || is("empty") || text.find('`') != std::string::npos;
  const bool one_word = text.find(' ') == std::string::npos;
  const bool a_number = !text.empty() && text[0] >= '0' && text[0] <= '9';
  if (phrase || (one_word && a_number) || (!one_word && !a_number)) return text;
  return code(text);
}

}  // namespace

std::string key_table(const Keys& keys) {
  const bool kinds = std::ranges::any_of(keys, [](const Key& key) { return !key.only_with.empty(); });
  std::string table = fmt::format("| key | type | default | meaning |{}\n|---|---|---|---|{}\n",
                                  kinds ? " only with |" : "", kinds ? "---|" : "");
  for (const Key& key : keys) {
    std::string with;
    for (const std::string& kind : words_of(key.only_with)) with += (with.empty() ? "" : ", ") + code(kind);
    table += fmt::format("| {} | {} | {} | {} |{}\n", code(std::string(key.name)), cell(type_cell(key)),
                         cell(default_cell(key)), cell(std::string(key.meaning)),
                         kinds ? " " + with + (with.empty() ? "|" : " |") : "");
  }
  return table;
}

}  // namespace stepcast
