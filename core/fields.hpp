#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keys.hpp"
#include "core/typed_numbers.hpp"
#include "core/words.hpp"
#include "core/yaml.hpp"

namespace stepcast {

/// How a value of type V stands in a YAML file.
template <class V>
struct Form {
  Allowed allowed;                                    ///< of Key
  std::function<V(const YamlValue&)> read;            ///< throws InputError
  std::function<std::string(const V&)> default_text;  ///< of Key
  const Keys& (*inside)() = nullptr;                  ///< of Key

  operator const Allowed&() const { return allowed; }
};

// Forms of one value. Both ends of a range are included.
Form<double> number(double low, double high = 1e300);
Form<double> number_below(double low, double end);  ///< `end` itself is not included
Form<std::int64_t> integer(std::int64_t low, std::int64_t high = INT64_MAX);
Form<bool> boolean();
Form<Seconds> duration(double low = 0);
Form<Bytes> bytes(double low = 0);
Form<BytesPerSecond> bandwidth();
Form<FlopsPerSecond> work_rate();
Form<std::string> text(const std::vector<KeyType>& types = {KeyType::text});  ///< not empty
Form<std::vector<std::string>> texts();      ///< one text or a list of texts, not empty
Form<std::vector<std::string>> text_list();  ///< may be empty
Form<std::vector<double>> numbers(double low, double high = 1e300);  ///< a list, may be empty
Form<std::string> one_of(const std::vector<std::string>& words);     ///< the word itself

/// The same values, or this word.
Allowed with_word(const Allowed& allowed, std::string_view word);

template <class E>
Form<E> choice(const Words<E>& words) {
  return {Allowed(KeyType::name, {}, words.names()),
          [words](const YamlValue& value) { return words.read(value); },
          [words](const E& value) { return words.of(value); }};
}

template <class E>
Form<E> choice(std::initializer_list<std::pair<std::string_view, E>> words) {
  return choice(Words<E>(words));
}

/// The value, or nothing where the word stands in its place.
template <class V>
Form<std::optional<V>> or_word(const Form<V>& form, std::string_view word) {
  return {with_word(form.allowed, word),
          [read = form.read, word](const YamlValue& value) -> std::optional<V> {
            if (value.node().text == word) return std::nullopt;
            return read(value);
          },
          [text = form.default_text, word](const std::optional<V>& value) {
            return value ? text(*value) : std::string(word);
          }};
}

/// The default of a key where the member of a new T does not say it.
struct Default {
  std::string_view text;
  std::string expected = "a value";  ///< what the error of a missing key expects
};

/// A key that must be there. @param expected  what the error expects if it is missing
Default required(std::string_view expected);
/// A default in words, such as "that of `kernels`", or "required with `background`".
Default otherwise(std::string_view text);

/// A key of a mapping and the member of T that it sets: name, type, range, default and meaning, said once.
/// The key's row in tables and schemas and its reader come from it.
template <class T>
struct Field {
  Key key;
  std::string expected = {};                                 ///< see Default
  std::function<void(const YamlValue&, T&)> read = nullptr;  ///< null: the reader of T reads it itself
};

namespace field_detail {

template <class M>
struct Held {
  using Type = M;
};
template <class M>
struct Held<std::optional<M>> {
  using Type = M;
};

/// The value of a form as a member holds it: in an optional, as another integer, or [s] and [B] as a double.
template <class M, class V>
M member_of(V value) {
  using Type = typename Held<M>::Type;
  if constexpr (std::same_as<M, V>) {
    return value;
  } else if constexpr (std::convertible_to<V, Type> || std::integral<Type>) {
    return static_cast<Type>(std::move(value));
  } else {
    return value.value;
  }
}

template <class V, class M>
V value_of(const M& member) {
  if constexpr (std::convertible_to<M, V>) {
    return static_cast<V>(member);
  } else {
    return V{member};
  }
}

template <class V, class M>
std::string default_of(const Form<V>& form, const M& member) {
  if constexpr (std::same_as<M, V> || std::same_as<M, typename Held<M>::Type>) {
    return form.default_text(value_of<V>(member));
  } else {
    return member ? form.default_text(value_of<V>(*member)) : "none";
  }
}

/// The value of the key in the mapping, without its source. @param kind  of the mapping; empty: it has none
std::optional<YamlValue> find_value(const YamlMap& map, const Key& key, const std::string& expected,
                                    std::string_view kind);

/// The word of the mapping's key `kind`. @throws InputError
std::string kind_in(const YamlValue& value, const Key& kind, const std::string& expected);

}  // namespace field_detail

/// The value of a key that is there, without its source.
YamlValue plain_value(const YamlMap& map, std::string_view key);

template <class T, class M, class V>
Field<T> field(std::string_view name, M T::*member, const Form<V>& form, const Default& otherwise,
               std::string_view meaning) {
  return {{name, form.allowed, otherwise.text, meaning, form.inside},
          otherwise.expected,
          [member, read = form.read](const YamlValue& value, T& into) {
            into.*member = field_detail::member_of<M>(read(value));
          }};
}

/// The default is the member's value in a new T.
template <class T, class M, class V>
Field<T> field(std::string_view name, M T::*member, const Form<V>& form, std::string_view meaning) {
  return field(name, member, form, Default{lasting(field_detail::default_of(form, T{}.*member))}, meaning);
}

/// A key whose value is only checked here, because others use it.
template <class T, class V>
Field<T> checked(std::string_view name, const Form<V>& form, const Default& otherwise,
                 std::string_view meaning) {
  return {{name, form.allowed, otherwise.text, meaning, form.inside},
          otherwise.expected,
          [read = form.read](const YamlValue& value, T&) { read(value); }};
}

/// A key that needs a reading function of its own.
template <class T>
Field<T> field(Key key, std::function<void(const YamlValue&, T&)> read = nullptr,
               std::string expected = "a value") {
  return {std::move(key), std::move(expected), std::move(read)};
}

/// One field, or several that have something in common.
template <class T>
struct FieldGroup {
  std::vector<Field<T>> fields;

  FieldGroup(Field<T> one) : fields{std::move(one)} {}
  FieldGroup(std::vector<Field<T>> all) : fields(std::move(all)) {}
};

/// Fields of a mapping only where its key `kind` is one of these (separated by commas).
template <class T>
std::vector<Field<T>> only_with(std::string_view kinds, std::vector<Field<T>> fields) {
  for (Field<T>& one : fields) one.key.only_with = kinds;
  return fields;
}

template <class T>
std::vector<Field<T>> only_with(std::string_view kinds, std::initializer_list<Field<T>> fields) {
  return only_with(kinds, std::vector<Field<T>>(fields));
}

/// The same field, which had this name before.
template <class T>
Field<T> renamed(Field<T> field, std::string_view former_name) {
  field.key.former_name = former_name;
  return field;
}

/// The same fields, whose keys are details (Key::detail).
template <class T>
std::vector<Field<T>> details(std::initializer_list<Field<T>> fields) {
  std::vector<Field<T>> all(fields);
  for (Field<T>& one : all) one.key.detail = true;
  return all;
}

/// A field whose value may, or must, be `{value: ..., source: ...}`.
template <class T>
Field<T> with_source(Field<T> field, Key::Source source) {
  field.key.source = source;
  return field;
}

/// All fields of the mapping that a T is read from.
template <class T>
class Fields {
 public:
  using Type = T;
  using Rule = void (*)(const YamlMap& map, T& value);

  /// @param check  checks what the keys say together, after all have been read
  Fields(std::initializer_list<FieldGroup<T>> groups, Rule check = nullptr) : rule_(check) {
    for (const FieldGroup<T>& group : groups) {
      for (const Field<T>& one : group.fields) {
        fields_.push_back(one);
        keys_.push_back(one.key);
      }
    }
  }

  /// The same fields; those with a number or a quantity may, or must, be `{value: ..., source: ...}`.
  Fields sourced(Key::Source source) && {
    keys_ = with_sources(std::move(keys_), source);
    for (std::size_t i = 0; i < keys_.size(); ++i) fields_[i].key.source = keys_[i].source;
    return std::move(*this);
  }

  /// The same fields, all of which may be missing. @param otherwise  their default in words
  Fields optional(std::string_view otherwise) && {
    for (std::size_t i = 0; i < keys_.size(); ++i)
      keys_[i].default_value = fields_[i].key.default_value = otherwise;
    return std::move(*this);
  }

  const Keys& keys() const { return keys_; }
  const std::vector<Field<T>>& fields() const { return fields_; }
  Rule rule() const { return rule_; }

  /// @throws std::out_of_range if there is none
  const Field<T>& at(std::string_view name) const {
    std::size_t i = 0;
    while (i < keys_.size() && keys_[i].name != name) ++i;
    return fields_.at(i);
  }

 private:
  std::vector<Field<T>> fields_;
  Keys keys_;
  Rule rule_;
};

/// A field of a member that is itself a struct, in the same mapping as those of T.
template <class T, class U>
Field<T> part(U T::*member, Field<U> one) {
  Field<T> made{one.key, one.expected};
  if (one.read) {
    made.read = [member, read = std::move(one.read)](const YamlValue& value, T& into) {
      read(value, into.*member);
    };
  }
  return made;
}

template <class T, class U>
std::vector<Field<T>> part(U T::*member, const Fields<U>& fields) {
  std::vector<Field<T>> all;
  for (const Field<U>& one : fields.fields()) all.push_back(part(member, one));
  return all;
}

/// Reads the fields from a mapping that may have further keys. What is missing keeps its value.
/// @throws InputError
template <class T>
void read_fields(const YamlMap& map, const Fields<T>& fields, T& into, std::string_view kind = {}) {
  for (const Field<T>& one : fields.fields()) {
    if (!one.read) continue;
    if (const auto value = field_detail::find_value(map, one.key, one.expected, kind)) one.read(*value, into);
  }
  if (fields.rule() != nullptr) fields.rule()(map, into);
}

/// Reads a mapping that has these keys and no others. @throws InputError
template <class T>
YamlMap read_mapping(const YamlValue& value, const Fields<T>& fields, T& into, std::string_view kind = {}) {
  YamlMap map = kind.empty() ? read_map(value, fields.keys()) : read_map(value, fields.keys(), kind);
  read_fields(map, fields, into, kind);
  return map;
}

/// Reads a mapping whose key `kind`, one of the fields, says which of them it has. @throws InputError
template <class T>
YamlMap read_mapping_of_kind(const YamlValue& value, const Fields<T>& fields, T& into) {
  const Field<T>& kind = fields.at("kind");
  return read_mapping(value, fields, into, field_detail::kind_in(value, kind.key, kind.expected));
}

namespace field_detail {

template <auto fields>
using TypeOf = typename std::remove_cvref_t<decltype(fields())>::Type;

template <auto fields>
TypeOf<fields> read(const YamlValue& value) {
  TypeOf<fields> made;
  read_mapping(value, fields(), made);
  return made;
}

}  // namespace field_detail

/// The keys of fields, as Key::inside names them. @tparam fields  a function that returns the fields
template <auto fields>
const Keys& keys_inside() {
  return fields().keys();
}

/// A mapping. @tparam fields  a function that returns its fields
template <auto fields>
Form<field_detail::TypeOf<fields>> mapping() {
  return {KeyType::mapping, field_detail::read<fields>, [](const auto&) { return "see its keys"; },
          keys_inside<fields>};
}

/// A list of mappings, by default an empty one.
template <auto fields>
Form<std::vector<field_detail::TypeOf<fields>>> list_of() {
  const auto read = [](const YamlValue& value) {
    std::vector<field_detail::TypeOf<fields>> all;
    for (const YamlValue& item : value.list()) all.push_back(field_detail::read<fields>(item));
    return all;
  };
  return {KeyType::mappings, read, [](const auto&) { return "none"; }, keys_inside<fields>};
}

}  // namespace stepcast
