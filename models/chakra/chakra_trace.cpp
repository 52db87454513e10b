#include "models/chakra/chakra_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "models/chakra/protobuf_wire.hpp"

namespace stepcast {
namespace {

// Numbers of the fields of the schema's messages.
namespace global_metadata {
constexpr int kVersion = 1;
}
namespace node {
constexpr int kId = 1, kName = 2, kType = 3, kControlAfter = 4, kDataAfter = 5, kDuration = 7, kInputs = 8,
              kAttribute = 10;
}
namespace inputs {
constexpr int kValues = 1;
}
namespace attribute {
constexpr int kName = 1, kDouble = 3, kFloat = 5, kInt32 = 7, kInt64 = 9, kSint32 = 15, kSint64 = 17,
              kBool = 27, kBools = 28, kString = 29;
}

void write_attribute(WireWriter& out, std::string_view name, int field, std::uint64_t value) {
  WireWriter one;
  one.text(attribute::kName, name);
  one.integer(field, value);
  out.text(node::kAttribute, one.bytes());
}

void write_communication(WireWriter& out, const ChakraNode& one) {
  const auto number = [&](std::string_view name, int field, std::int64_t value) {
    write_attribute(out, name, field, value);
  };
  number("comm_size", attribute::kInt64, one.bytes);
  if (one.type == ChakraNode::Type::collective) {
    number("comm_type", attribute::kInt64, static_cast<std::int64_t>(one.collective));
    if (one.group.empty()) return;
    WireWriter group;
    group.text(attribute::kName, "pg_name");
    group.text(attribute::kString, one.group);
    return out.text(node::kAttribute, group.bytes());
  }
  number("comm_src", attribute::kInt32, one.source);
  number("comm_dst", attribute::kInt32, one.target);
  number("comm_tag", attribute::kInt32, one.tag);
}

std::string node_text(const ChakraNode& one) {
  WireWriter out;
  if (one.id != 0) out.integer(node::kId, one.id);
  out.text(node::kName, one.name);
  out.integer(node::kType, static_cast<std::uint64_t>(one.type));
  std::string ids;
  for (const std::uint64_t earlier : one.after) append_varint(ids, earlier);
  if (!ids.empty()) out.text(node::kDataAfter, ids);
  if (one.microseconds != 0) out.integer(node::kDuration, one.microseconds);
  write_attribute(out, "is_cpu_op", attribute::kBool, one.on_host ? 1 : 0);
  if (one.type == ChakraNode::Type::send || one.type == ChakraNode::Type::receive ||
      one.type == ChakraNode::Type::collective)
    write_communication(out, one);
  return out.bytes();
}

}  // namespace

void write_chakra_trace(const std::filesystem::path& file,
                        const std::function<void(const std::function<void(const ChakraNode&)>&)>& nodes) {
  WireWriter version;
  version.text(global_metadata::kVersion, "0.0.4");
  std::string bytes;
  append_message(bytes, version.bytes());
  nodes([&](const ChakraNode& one) { append_message(bytes, node_text(one)); });
  write_atomically(file, bytes);
}

namespace {

std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::int64_t whole_number(double value) {
  constexpr double kMost = 9e18;
  return static_cast<std::int64_t>(std::isnan(value) ? 0 : std::clamp(value, -kMost, kMost));
}

/// The value of an attribute: a number of any of the schema's types, or a text.
struct AttributeValue {
  std::optional<std::int64_t> number;
  std::string text;
};

AttributeValue attribute_value(const WireReader& field) {
  if (field.is_text()) {
    if (field.field() == attribute::kString) return {{}, std::string(field.text())};
    return {};
  }
  const std::uint64_t bits = field.integer();
  switch (field.field()) {
    case attribute::kDouble:
      return {whole_number(std::bit_cast<double>(bits)), {}};
    case attribute::kFloat:
      return {whole_number(std::bit_cast<float>(static_cast<std::uint32_t>(bits))), {}};
    case attribute::kSint32:
    case attribute::kSint64:
      return {zigzag(bits), {}};
    case attribute::kInt32:
      return {static_cast<std::int32_t>(bits), {}};
    default:
      return {static_cast<std::int64_t>(bits), {}};
  }
}

/// True if a list of bools has one that is false; they are packed, or numbers one by one.
bool has_false(WireReader list) {
  bool found = false;
  while (list.next()) {
    if (!list.is_text())
      found |= list.integer() == 0;
    else
      found |= list.text().find('\0') != std::string_view::npos;
  }
  return found;
}

void read_attribute(WireReader reader, ChakraNode& one) {
  std::string name;
  AttributeValue value;
  bool some = false;
  while (reader.next()) {
    if (reader.field() == attribute::kName) name = reader.text();
    if (reader.field() == attribute::kBools) some = has_false(reader.message());
    if (reader.field() >= attribute::kDouble) value = attribute_value(reader);
  }
  if (name == "involved_dim") one.over_some_dimensions = some;
  if (name == "pg_name" && value.number) value.text = std::to_string(*value.number);
  if (name == "pg_name") one.group = value.text;
  if (!value.number) return;
  const std::int64_t number = *value.number;
  if (name == "is_cpu_op") one.on_host = number != 0;
  if (name == "comm_type") one.collective = static_cast<ChakraNode::Collective>(number), one.has_kind = true;
  if (name == "comm_size") one.bytes = number, one.has_size = true;
  if (name == "num_ops") one.operations = std::max<std::int64_t>(0, number);
  if (name == "comm_src") one.source = number;
  if (name == "comm_dst") one.target = number;
  if (name == "comm_tag") one.tag = number;
}

/// A repeated number: one of them, or a packed list.
void read_numbers(const WireReader& field, std::vector<std::uint64_t>& numbers) {
  if (!field.is_text()) return numbers.push_back(field.integer());
  WireReader list = field.message();
  while (!list.at_end()) numbers.push_back(list.varint());
}

ChakraNode read_node(WireReader reader) {
  ChakraNode one;
  while (reader.next()) {
    switch (reader.field()) {
      case node::kId:
        one.id = reader.integer();
        break;
      case node::kName:
        one.name = reader.text();
        break;
      case node::kType:
        one.type = static_cast<ChakraNode::Type>(reader.integer());
        break;
      case node::kControlAfter:
      case node::kDataAfter:
        read_numbers(reader, one.after);
        break;
      case node::kDuration:
        one.microseconds = reader.integer();
        break;
      case node::kInputs:
        for (WireReader part = reader.message(); part.next();)
          if (part.field() == inputs::kValues) one.values = part.text();
        break;
      case node::kAttribute:
        read_attribute(reader.message(), one);
        break;
      default:
        break;
    }
  }
  return one;
}

}  // namespace

std::vector<ChakraNode> read_chakra_trace(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  WireReader messages(bytes, 0);
  std::vector<ChakraNode> nodes;
  try {
    for (bool first = true; !messages.at_end(); first = false) {
      const std::uint64_t size = messages.varint();
      const std::size_t begin = messages.position();
      const WireReader message(messages.take(size), begin);
      if (!first) nodes.push_back(read_node(message));  // the first has the version
    }
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}; is this a Chakra trace?", file.string(), error.what()));
  }
  return nodes;
}

}  // namespace stepcast
