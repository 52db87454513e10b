#include "models/chakra/chakra_trace.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "models/chakra/protobuf_wire.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast::chakra_trace_test {

using Catch::Matchers::Contains;

/// Reads a trace of the given bytes.
std::vector<ChakraNode> read_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "a.et", std::ios::binary) << bytes;
  return read_chakra_trace(folder.path() / "a.et");
}

TEST_CASE("A Chakra trace has the bytes that protobuf's rules and the schema's numbers give", "[models]") {
  ChakraNode first{.id = 1, .name = "a", .type = ChakraNode::Type::compute, .after = {}, .microseconds = 300};
  first.on_host = false;
  const TemporaryFolder folder;
  write_chakra_trace(folder.path() / "a.et", [&](const auto& write) { write(first); });
  using namespace std::string_literals;
  const std::string is_cpu_op = "\x52\x0e"s + "\x0a\x09is_cpu_op"s + "\xd8\x01\x00"s;  // fields 10, 1 and 27
  const std::string node = "\x08\x01"s +
                           "\x12\x01"
                           "a"s +
                           "\x18\x04"s + "\x38\xac\x02"s + is_cpu_op;
  CHECK(read_file(folder.path() / "a.et") ==
        "\x07\x0a\x05"
        "0.0.4"s +
            static_cast<char>(node.size()) + node);
}

TEST_CASE("A Chakra trace that was written is read again", "[models]") {
  ChakraNode sum{.id = 1, .name = "sum", .type = ChakraNode::Type::collective, .after = {}};
  sum.on_host = false;
  sum.collective = ChakraNode::Collective::reduce_scatter;
  sum.bytes = 5'000'000'000;
  sum.group = "3";
  ChakraNode message{.id = 300, .name = "to 7", .type = ChakraNode::Type::send, .after = {1, 200}};
  message.source = 0;
  message.target = 7;
  message.tag = 1 << 29;
  message.bytes = 12;
  const TemporaryFolder folder;
  write_chakra_trace(folder.path() / "a.et", [&](const auto& write) { write(sum), write(message); });
  const auto nodes = read_chakra_trace(folder.path() / "a.et");
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].collective == sum.collective);
  CHECK(nodes[0].bytes == sum.bytes);
  CHECK(nodes[0].group == "3");
  CHECK_FALSE(nodes[0].on_host);
  CHECK(nodes[1].after == message.after);
  CHECK(nodes[1].target == 7);
  CHECK(nodes[1].tag == message.tag);
}

/// A node as other writers make it: numbers of other types, dependencies that are not packed, further fields.
TEST_CASE("A Chakra trace of another writer is read", "[models]") {
  WireWriter version, node, inputs;
  version.text(1, "0.0.4");
  inputs.text(1, "[]");
  node.integer(1, 4);
  node.integer(3, 7);
  node.integer(4, 2);  // ctrl_deps
  node.integer(5, 3);  // data_deps
  node.integer(6, 99);
  node.text(8, inputs.bytes());
  const auto attribute = [&](const char* name, int field, std::uint64_t value) {
    WireWriter one;
    one.text(1, name);
    one.text(2, "doc_string");
    one.integer(field, value);
    node.text(10, one.bytes());
  };
  attribute("comm_size", 13, 65536);  // uint64, as the schema's generator writes it
  attribute("comm_type", 9, 2);       // int64
  attribute("comm_src", 15, 5);       // sint32: -3
  attribute("rf_id", 9, 12);          // of PyTorch's converter
  std::string file;
  append_message(file, version.bytes());
  append_message(file, node.bytes());
  const auto nodes = read_bytes(file);
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0].after == std::vector<std::uint64_t>{2, 3});
  CHECK(nodes[0].bytes == 65536);
  CHECK(nodes[0].collective == ChakraNode::Collective::all_gather);
  CHECK(nodes[0].source == -3);
  CHECK(nodes[0].on_host);
  CHECK(nodes[0].values == "[]");
}

TEST_CASE("A file that is no Chakra trace is refused with its place", "[models][errors]") {
  const auto refusal = [](const std::string& bytes) -> std::string {
    try {
      read_bytes(bytes);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  using namespace std::string_literals;
  const std::string version = "\x02\x0a\x00"s;
  CHECK_THAT(refusal("\x7f"s), Contains("byte 1: expected 127 more bytes, got 0; is this a Chakra trace?"));
  CHECK_THAT(refusal(version + "\x02\x0a\x00"s), Contains("field 1: expected a number, got a text"));
  CHECK_THAT(refusal(version + "\x02\x10\x00"s), Contains("field 2: expected a text, got a number"));
  CHECK_THAT(refusal(version + "\x01\x0b"s), Contains("byte 4: expected a protobuf field, got wire type 3"));
  CHECK_THAT(refusal(std::string(11, '\xff')), Contains("expected a number of at most 10 bytes"));
}

}  // namespace stepcast::chakra_trace_test
