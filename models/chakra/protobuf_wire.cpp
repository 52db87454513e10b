#include "models/chakra/protobuf_wire.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace stepcast {

void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(0x80 | (value & 0x7f));
  bytes.push_back(value);
}

namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

void WireWriter::integer(int field, std::uint64_t value) {
  append_varint(bytes_, static_cast<std::uint64_t>(field) << 3);
  append_varint(bytes_, value);
}

void WireWriter::text(int field, std::string_view value) {
  append_varint(bytes_, static_cast<std::uint64_t>(field) << 3 | 2);
  append_varint(bytes_, value.size());
  bytes_ += value;
}

void append_message(std::string& file, const std::string& message) {
  append_varint(file, message.size());
  file += message;
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const unsigned char byte = take(1).front();
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw InputError(
      fmt::format("byte {}: expected a number of at most 10 bytes, got a longer one", position()));
}

std::string_view WireReader::take(std::uint64_t count) {
  if (count > bytes_.size() - place_)
    throw InputError(
        fmt::format("byte {}: expected {} more bytes, got {}", position(), count, bytes_.size() - place_));
  const std::string_view taken = bytes_.substr(place_, count);
  place_ += count;
  return taken;
}

std::uint64_t WireReader::integer() const {
  if (is_text())
    throw InputError(fmt::format("byte {}: field {}: expected a number, got a text", position(), field_));
  return integer_;
}

std::string_view WireReader::text() const {
  if (!is_text())
    throw InputError(fmt::format("byte {}: field {}: expected a text, got a number", position(), field_));
  return text_;
}

WireReader WireReader::message() const {
  const std::string_view inner = text();
  return {inner, begin_ + (inner.data() - bytes_.data())};
}

bool WireReader::next() {
  if (at_end()) return false;
  const std::size_t begin = position();
  const std::uint64_t key = varint();
  field_ = key >> 3;
  kind_ = static_cast<Kind>(key & 7);
  switch (kind_) {
    case Kind::varint:
      integer_ = varint();
      return true;
    case Kind::eight_bytes:
      integer_ = little_endian(take(8));
      return true;
    case Kind::four_bytes:
      integer_ = little_endian(take(4));
      return true;
    case Kind::text:
      text_ = take(varint());
      return true;
  }
  throw InputError(fmt::format("byte {}: expected a protobuf field, got wire type {}", begin, key & 7));
}

}  // namespace stepcast
