#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

/// Appends an integer of 1 to 10 bytes, seven bits each, the lowest first.
void append_varint(std::string& bytes, std::uint64_t value);

/// Appends the fields of one protobuf message to a text. Source: "Encoding", protobuf.dev.
class WireWriter {
 public:
  void integer(int field, std::uint64_t value);  ///< a varint; negative numbers as their 64-bit complement
  void text(int field, std::string_view value);  ///< a string, or a message's text
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Appends the message with its length before it, as files of several messages have it.
void append_message(std::string& file, const std::string& message);

/// Reads the fields of one protobuf message.
class WireReader {
 public:
  /// @param begin  of the bytes in the file, for errors
  WireReader(std::string_view bytes, std::size_t begin) : bytes_(bytes), begin_(begin) {}

  /// Goes to the next field. @returns false at the end
  /// @throws InputError `byte N: ...`
  bool next();
  int field() const { return field_; }
  bool is_text() const { return kind_ == Kind::text; }  ///< else it is an integer
  /// The value of a varint, or the bits of a number of fixed size. @throws InputError if it is a text
  std::uint64_t integer() const;
  std::string_view text() const;  ///< @throws InputError if it is an integer
  WireReader message() const;     ///< of a text. @throws InputError if it is an integer

  /// The next varint. @throws InputError
  std::uint64_t varint();
  /// The next bytes, so many. @throws InputError
  std::string_view take(std::uint64_t count);
  std::size_t position() const { return begin_ + place_; }
  bool at_end() const { return place_ == bytes_.size(); }

 private:
  enum class Kind { varint = 0, eight_bytes = 1, text = 2, four_bytes = 5 };

  std::string_view bytes_;
  std::size_t begin_, place_ = 0;
  int field_ = 0;
  Kind kind_{};
  std::uint64_t integer_ = 0;
  std::string_view text_;
};

}  // namespace stepcast
