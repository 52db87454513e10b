#include "validate/letter.hpp"

#include <cstring>

namespace stepcast {
namespace {

/// What goes before the payload, as floats.
struct Header {
  std::int64_t begin, end, floats, rows, parcel, parcel_floats;
  double size, value, density;
  std::int32_t from, tag, parts, array, run, compression;
};
static_assert(sizeof(Header) == sizeof(Letter::header));

Header header_of(const Message& message, int run, std::int64_t floats) {
  return {message.buffer.elements.begin,
          message.buffer.elements.end,
          floats,
          message.buffer.codec.rows,
          message.parcel.number,
          message.parcel.floats,
          message.buffer.size.value,
          message.value,
          message.buffer.codec.density,
          message.from,
          message.tag,
          message.parts,
          static_cast<std::int32_t>(message.buffer.array),
          run,
          static_cast<std::int32_t>(message.buffer.codec.kind)};
}

Message message_of(const Header& header) {
  Message message;
  message.from = header.from;
  message.tag = header.tag;
  const Codec codec{static_cast<Compression>(header.compression), header.rows, header.density};
  message.buffer = {static_cast<Array>(header.array), {header.begin, header.end}, {header.size}, codec};
  message.parts = header.parts;
  message.value = header.value;
  message.parcel = {header.parcel, header.parcel_floats};
  return message;
}

}  // namespace

Letter letter_of(const Message& message, int run, std::int64_t floats) {
  Letter letter;
  letter.message = message;
  letter.run = run;
  letter.floats = floats;
  letter.copied = std::make_shared<std::atomic<std::int64_t>>(0);
  const Header header = header_of(message, run, floats);
  std::memcpy(letter.header.data(), &header, sizeof header);
  return letter;
}

void read_header(Letter& letter) {
  Header header;
  std::memcpy(&header, letter.header.data(), sizeof header);
  letter.message = message_of(header);
  letter.run = header.run;
  letter.floats = header.floats;
}

}  // namespace stepcast
