#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace stepcast {

/// A file of JSON as a stream of bytes for RapidJSON's reader, unpacked if it is gzip's. It holds 64 KB at a
/// time, and refuses more than 4 GB of JSON and tokens of more than 4 MB. Bare words that JSON does not have,
/// such as inf, NaN and N/A, are empty texts.
class UnpackedFile {
 public:
  using Ch = char;

  /// @throws InputError if the file cannot be read; so do the functions below if it is damaged or too large
  explicit UnpackedFile(const std::string& name);

  char Peek() const { return *next_; }  ///< 0 at the end
  char Take() {
    const char taken = *next_++;
    if (next_ == end_) refill();
    return taken;
  }
  std::size_t Tell() const { return read_ - (end_ - next_); }

  /// The parser has read a token.
  void start_token() { token_start_ = Tell(); }
  bool at_end() const { return ended_; }

  // For parsers that change the text in place.
  char* PutBegin() { return nullptr; }
  void Put(char) {}
  std::size_t PutEnd(char*) { return 0; }

 private:
  void refill();
  void replace_words(char* begin, char* end);
  [[noreturn]] void refuse(const std::string& why) const;

  std::string name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, 1 << 16> buffer_{};
  const char *next_ = nullptr, *end_ = nullptr;
  std::int64_t read_ = 0;  ///< bytes before end_
  std::size_t token_start_ = 0;
  bool ended_ = false;
  bool in_text_ = false, escaped_ = false;  ///< at the end of the buffer
  bool in_word_ = false;                    ///< its first letter is the opening quote of an empty text
  bool opened_ = false;                     ///< the closing quote is still to be written
};

}  // namespace stepcast
