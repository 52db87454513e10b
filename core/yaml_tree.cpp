#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "core/yaml.hpp"

namespace stepcast {
namespace {

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

constexpr std::size_t kMaxFileBytes = 1 << 20;

void check_bytes(std::string_view text, const Place& place) {
  if (text.size() > kMaxFileBytes) {
    throw InputError(fmt::format("{}: file of {} bytes, at most 1 MiB is read", *place.file, text.size()));
  }
  const auto bad = first_bad_byte(text);
  if (!bad) return;
  Place at = place;
  at.line = 1;
  at.column = 1;
  for (const char c : text.substr(0, bad->offset)) {
    at.column = c == '\n' ? 1 : at.column + 1;
    at.line += c == '\n';
  }
  throw InputError(fmt::format("{}: {}", to_string(at), bad->reason));
}

/// Advice for a file that is not there: the nearest name in its folder.
std::string nearest_file(const std::filesystem::path& file) {
  constexpr std::size_t kMostNames = 1000;
  std::error_code error;
  if (std::filesystem::exists(file, error)) return "";
  const auto folder = file.parent_path().empty() ? std::filesystem::path(".") : file.parent_path();
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end && names.size() < kMostNames; at.increment(error)) {
    if (at->path().extension() == file.extension()) names.push_back(at->path().filename().string());
  }
  const std::string nearest = nearest_word(file.filename().string(), names);
  return nearest.empty() ? ""
                         : fmt::format("; did you mean \"{}\"?", (file.parent_path() / nearest).string());
}

/// Removes `version` from the top of a file, after checking that it is the one that is known.
void take_version(YamlNode& root) {
  const YamlNode* version = root.find("version");
  if (version == nullptr) return;
  if (version->kind != YamlNode::Kind::scalar || version->text != "1")
    YamlValue(*version, "version").expected("1, the version of files that this stepcast reads");
  std::erase_if(root.entries, [](const auto& entry) { return entry.first.text == "version"; });
}

/// Advice for the two most frequent mistakes of form.
std::string advice_on_form(std::string_view text, const YAML::Exception& error) {
  std::size_t begin = 0;
  for (int line = 0; line < error.mark.line && begin != std::string_view::npos; ++line) {
    begin = text.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  const bool json = text.find_first_not_of(" \t\r\n") == text.find_first_of("{[");
  if (!json && begin < text.size() && text[begin] == '\t') return "; indent with spaces, not with tabs";
  if (error.msg != "illegal map value") return "";
  return "; indent a key like those beside it, and put a text with \": \" in quotes";
}

/// The documents of a text, which has `most` at most.
std::vector<YamlNode> parse_documents(std::string_view text, const std::string& file_name, std::size_t most) {
  Place place{std::make_shared<const std::string>(file_name), 1, 1};
  check_bytes(text, place);
  // yaml-cpp notices a quote that is never closed only if no white space follows it.
  const auto last = text.find_last_not_of(" \t\r\n");
  std::istringstream stream{std::string(text.substr(0, last == std::string_view::npos ? 0 : last + 1))};
  std::vector<YamlNode> documents;
  try {
    YAML::Parser parser(stream);
    for (;;) {
      TreeBuilder tree(place.file);
      if (!parser.HandleNextDocument(tree)) break;
      const Place& where = tree.root.place.line > 0 ? tree.root.place : place;
      if (documents.size() == most)
        throw InputError(
            fmt::format("{}: text after the end of the document (one document a file)", to_string(where)));
      documents.push_back(std::move(tree.root));
    }
  } catch (const YAML::Exception& error) {
    place.line = error.mark.line + 1;
    place.column = error.mark.column + 1;
    throw InputError(
        fmt::format("{}: invalid YAML: {}{}", to_string(place), error.msg, advice_on_form(text, error)));
  }
  if (documents.empty()) throw InputError(fmt::format("{}: the file is empty", file_name));
  return documents;
}

std::string text_of(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw InputError(file.string() + ": is a folder, not a file");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    const std::string why = errno != 0 ? ": " + std::generic_category().message(errno) : "";
    throw InputError(file.string() + ": cannot be read" + why + nearest_file(file));
  }
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), text.size());
  text.resize(stream.gcount());
  if (text.size() > kMaxFileBytes) throw InputError(file.string() + ": larger than 1 MiB");
  return text;
}

std::vector<YamlNode> read_documents(const std::filesystem::path& file, std::size_t most) {
  std::vector<YamlNode> documents = is_standard_input(file)
                                        ? parse_documents(standard_input(), "standard input", most)
                                        : parse_documents(text_of(file), file.string(), most);
  for (YamlNode& root : documents) take_version(root);
  return documents;
}

}  // namespace

YamlNode parse_yaml(std::string_view text, const std::string& file_name) {
  return std::move(parse_documents(text, file_name, 1).front());
}

YamlNode parse_yaml_file(std::string_view text, const std::string& file_name) {
  YamlNode root = parse_yaml(text, file_name);
  take_version(root);
  return root;
}

YamlNode read_yaml(const std::filesystem::path& file) {
  return std::move(read_documents(file, 1).front());
}

std::vector<YamlNode> read_yaml_documents(const std::filesystem::path& file) {
  return read_documents(file, 1000);
}

YamlNode::YamlNode() = default;
YamlNode::YamlNode(const YamlNode& other) = default;
YamlNode::YamlNode(YamlNode&& other) noexcept = default;
YamlNode& YamlNode::operator=(const YamlNode& other) = default;
YamlNode& YamlNode::operator=(YamlNode&& other) noexcept = default;
YamlNode::~YamlNode() = default;

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.text == key) return &value;
  }
  return nullptr;
}

std::string to_string(const Place& place) {
  if (!place.file) return "?";
  return place.line == 0 ? *place.file : fmt::format("{}:{}:{}", *place.file, place.line, place.column);
}

namespace {

constexpr std::size_t kMaxScalarBytes = 64 << 10;
constexpr std::size_t kMaxNodes = 200'000;
constexpr std::size_t kMaxDepth = 64;

std::size_t count_nodes(const YamlNode& node) {
  std::size_t count = 1;
  for (const YamlNode& item : node.items) count += count_nodes(item);
  for (const auto& [key, value] : node.entries) count += 1 + count_nodes(value);
  return count;
}

[[noreturn]] void refuse(const Place& where, const std::string& why) {
  throw InputError(fmt::format("{}: {}", to_string(where), why));
}

}  // namespace

void TreeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  add(make(YamlNode::Kind::nothing, mark), anchor);
}

void TreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) refuse(place(mark), "alias to a mapping or list that contains it");
  nodes_ += count_nodes(found->second);
  check_count(place(mark));
  YamlNode copy = found->second;
  copy.place = place(mark);
  add(std::move(copy), 0);
}

void TreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                           const std::string& value) {
  if (value.size() > kMaxScalarBytes) refuse(place(mark), "text longer than 64 KiB");
  check_tag(mark, tag);
  YamlNode node = make(YamlNode::Kind::scalar, mark);
  node.text = value;
  node.quoted = tag == "!";
  add(std::move(node), anchor);
}

void TreeBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                                  YAML::EmitterStyle::value) {
  open(YamlNode::Kind::sequence, mark, tag, anchor);
}

void TreeBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                             YAML::EmitterStyle::value) {
  open(YamlNode::Kind::mapping, mark, tag, anchor);
}

void TreeBuilder::check_tag(const YAML::Mark& mark, const std::string& tag) const {
  if (!tag.empty() && tag != "?" && tag != "!")
    refuse(place(mark), "tags are not used here: remove \"" + printable(tag) + "\"");
}

void TreeBuilder::check_count(const Place& where) const {
  if (nodes_ > kMaxNodes) refuse(where, "more than 200000 values after expanding aliases");
}

YamlNode TreeBuilder::make(YamlNode::Kind kind, const YAML::Mark& mark) {
  ++nodes_;
  check_count(place(mark));
  YamlNode node;
  node.kind = kind;
  node.place = place(mark);
  return node;
}

void TreeBuilder::open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor) {
  if (open_.size() >= kMaxDepth) refuse(place(mark), "nested deeper than 64 levels");
  check_tag(mark, tag);
  if (!open_.empty() && awaits_key(open_.back())) refuse(place(mark), "a key must be plain text");
  open_.push_back({make(kind, mark), anchor, std::nullopt, {}});
}

void TreeBuilder::close() {
  Open done = std::move(open_.back());
  open_.pop_back();
  add(std::move(done.node), done.anchor);
}

bool TreeBuilder::awaits_key(const Open& parent) {
  return parent.node.kind == YamlNode::Kind::mapping && !parent.key;
}

void TreeBuilder::add(YamlNode node, YAML::anchor_t anchor) {
  if (anchor != 0) {
    nodes_ += count_nodes(node);  // each of several nested anchors keeps a copy of the inner nodes
    check_count(node.place);
    anchors_[anchor] = node;
  }
  if (open_.empty()) {
    root = std::move(node);
  } else if (Open& parent = open_.back(); parent.node.kind == YamlNode::Kind::sequence) {
    parent.node.items.push_back(std::move(node));
  } else if (awaits_key(parent)) {
    set_key(parent, std::move(node));
  } else {
    // yaml-cpp marks an empty value at the next token, often a line further down.
    if (node.kind == YamlNode::Kind::nothing) node.place = parent.key->place;
    parent.node.entries.emplace_back(std::move(*parent.key), std::move(node));
    parent.key.reset();
  }
}

void TreeBuilder::set_key(Open& parent, YamlNode key) {
  if (key.kind != YamlNode::Kind::scalar) refuse(key.place, "a key must be plain text");
  if (key.text == "<<") refuse(key.place, "merge keys (<<) are not supported: write the keys out");
  if (!parent.known_keys.insert(key.text).second) refuse(key.place, printable(key.text) + ": given twice");
  parent.key = std::move(key);
}

}  // namespace stepcast
