#include <cstring>

#include "runtime/p2p/point_to_point.hpp"

namespace stepcast {
namespace {

/// The bytes of InFlightMessage::header.
struct Header {
  std::int64_t begin, end, floats, rows, payload, payload_floats;
  double size, value, density;
  std::int32_t from, tag, parts, array, run, compression, answered, unused;
};
static_assert(sizeof(Header) == sizeof(InFlightMessage::header));

Header header_of(const Message& message, int run, std::int64_t floats) {
  return {message.buffer.elements.begin,
          message.buffer.elements.end,
          floats,
          message.buffer.codec.rows,
          message.payload.number,
          message.payload.floats,
          message.buffer.size.value,
          message.value,
          message.buffer.codec.density,
          message.from.value,
          message.tag.value,
          message.parts,
          static_cast<std::int32_t>(message.buffer.array),
          run,
          static_cast<std::int32_t>(message.buffer.codec.kind),
          static_cast<std::int32_t>(message.answered),
          0};
}

Message message_of(const Header& header) {
  Message message;
  message.from = RoleId(header.from);
  message.tag = MessageTag(header.tag);
  const Codec codec{static_cast<Compression>(header.compression), header.rows, header.density};
  message.buffer = {static_cast<Array>(header.array), {header.begin, header.end}, {header.size}, codec};
  message.parts = header.parts;
  message.value = header.value;
  message.answered = header.answered != 0;
  message.payload = {header.payload, header.payload_floats};
  return message;
}

}  // namespace

InFlightMessage outgoing_message(const Message& envelope, int run, std::int64_t floats) {
  InFlightMessage outgoing;
  outgoing.envelope = envelope;
  outgoing.run = run;
  outgoing.floats = floats;
  outgoing.sendable = std::make_shared<std::atomic<std::int64_t>>(0);
  const Header header = header_of(envelope, run, floats);
  std::memcpy(outgoing.header.data(), &header, sizeof header);
  return outgoing;
}

void read_header(InFlightMessage& incoming) {
  Header header;
  std::memcpy(&header, incoming.header.data(), sizeof header);
  incoming.envelope = message_of(header);
  incoming.run = header.run;
  incoming.floats = header.floats;
}

}  // namespace stepcast
