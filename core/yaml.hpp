#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/typed_numbers.hpp"

namespace stepcast {

/// Position of a node in its file, printed as `FILE:LINE:COL`. `line` 0 means the command line; `file` is
/// then the option.
struct Place {
  std::shared_ptr<const std::string> file;
  int line = 0;    ///< from 1
  int column = 0;  ///< from 1
};

/// One node of a YAML file, aliases expanded. Plain data, so that a sweep can replace any part of it
/// (scenarios/reader/sweep.hpp).
struct YamlNode {
  enum class Kind { nothing, scalar, sequence, mapping };

  Kind kind = Kind::nothing;
  Place place;                                         ///< position of the value
  bool quoted = false;                                 ///< a quoted scalar is always text
  std::string text;                                    ///< scalar
  std::vector<YamlNode> items;                         ///< sequence
  std::vector<std::pair<YamlNode, YamlNode>> entries;  ///< mapping: (key scalar, value), in file order

  const YamlNode* find(std::string_view key) const;  ///< the value of `key` in a mapping, or null

  // Defined in the .cpp: clang 14 cannot instantiate a pair of YamlNode while YamlNode is incomplete.
  YamlNode();
  YamlNode(const YamlNode& other);
  YamlNode(YamlNode&& other) noexcept;
  YamlNode& operator=(const YamlNode& other);
  YamlNode& operator=(YamlNode&& other) noexcept;
  ~YamlNode();
};

/// Parses one YAML file within the limits of docs/reference/input-files.md: one document, at most 1 MiB, 64
/// levels, 200,000 nodes, UTF-8, no tags, no duplicate keys, no merge keys.
/// @throws InputError with file, line and column
YamlNode read_yaml(const std::filesystem::path& file);
/// Reads a YAML file of one or more documents, between which lines `---` stand, by the same rules.
std::vector<YamlNode> read_yaml_documents(const std::filesystem::path& file);
/// Parses YAML text by the same rules. @param file_name  for error messages
YamlNode parse_yaml(std::string_view text, const std::string& file_name);
/// Parses what a file holds, or will hold: without its `version`, as read_yaml returns it.
YamlNode parse_yaml_file(std::string_view text, const std::string& file_name);

class YamlMap;

/// A node with its path (`network.links[2].bandwidth`). All typed values are read from YAML files through it.
/// Every accessor throws InputError: `FILE:LINE:COL: key.path: expected WHAT, got "TEXT"`.
class YamlValue {
 public:
  YamlValue(const YamlNode& node, std::string path) : node_(&node), path_(std::move(path)) {}

  const YamlNode& node() const { return *node_; }
  const std::string& path() const { return path_; }

  std::string text() const;  ///< not empty
  bool boolean() const;      ///< true | false
  std::int64_t integer(std::int64_t low, std::int64_t high = INT64_MAX) const;
  double number(double low, double high = 1e300) const;  ///< plain decimal, finite; both ends included
  /// Quantities such as "25 GB/s", "100 Gbit/s", "1.5 us", "4 MiB" or "19.5 Tflop/s". `low` is the least
  /// accepted value; pass a tiny one for "> 0".
  Seconds seconds(double low = 0) const;
  Bytes bytes(double low = 0) const;
  Flops flops(double low = 0) const;
  BytesPerSecond bytes_per_second() const;  ///< > 0
  FlopsPerSecond flops_per_second() const;  ///< > 0
  /// Index of the text among `words`. The error lists all words and suggests the nearest.
  std::size_t one_of(const std::vector<std::string>& words) const;
  YamlMap map(std::vector<std::string> known_keys)
      const;  ///< refuses unknown keys and suggests the nearest known one
  /// A mapping whose keys the user chooses. @param example  for the error
  YamlMap any_map(std::string_view example = {}) const;
  std::vector<YamlValue> list() const;  ///< a sequence; may be empty
  bool is(YamlNode::Kind kind) const { return node_->kind == kind; }

  /// Throws `PLACE: path: expected WHAT, got "TEXT"`.
  [[noreturn]] void expected(std::string_view what) const;
  /// Throws `PLACE: path: MESSAGE`, for errors that "expected ..., got ..." does not describe.
  [[noreturn]] void refuse(std::string_view message) const;

 private:
  const YamlNode* node_;
  std::string path_;
};

/// A mapping whose keys were checked. `at` throws when the key is missing, `maybe` returns nothing.
class YamlMap {
 public:
  YamlMap(YamlValue value) : value_(std::move(value)) {}

  YamlValue at(std::string_view key, std::string_view expected = "a value") const;
  std::optional<YamlValue> maybe(std::string_view key) const;
  bool has(std::string_view key) const { return value_.node().find(key) != nullptr; }
  std::vector<std::pair<std::string, YamlValue>> entries() const;  ///< in file order
  const YamlValue& value() const { return value_; }

 private:
  YamlValue value_;
};

/// `FILE:LINE:COL`, or the option for a value from the command line.
std::string to_string(const Place& place);

/// The text as a YAML scalar in double quotes, which all writers of YAML use. Control characters are escaped,
/// and bytes that are no UTF-8 text replaced.
std::string yaml_quoted(const std::string& text);

/// The values as a YAML list with six significant digits, such as "[1.5, 2e-06]".
std::string yaml_numbers(const std::vector<double>& values);

}  // namespace stepcast
