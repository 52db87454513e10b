#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

/// Builds the tree from yaml-cpp's events. It refuses input that yaml-cpp's own loader accepts: cycles, alias
/// bombs, duplicate and merge keys, tags, deep nesting and long scalars (docs/reference/input-files.md).
/// @throws InputError
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}

  YamlNode root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  /// A mapping or sequence whose end has not been read yet.
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    std::optional<YamlNode> key;
    std::set<std::string> known_keys;  ///< for a quick search of duplicates
  };

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const;
  void check_count(const Place& where) const;
  YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark);
  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor);
  void close();
  static bool awaits_key(const Open& parent);
  void add(YamlNode node, YAML::anchor_t anchor);
  static void set_key(Open& parent, YamlNode key);

  std::shared_ptr<const std::string> file_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  std::size_t nodes_ = 0;
};

}  // namespace stepcast
