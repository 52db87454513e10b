#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace stepcast {

/// A file whose bytes are read where they are asked for; several threads may read at once.
class BinaryFile {
 public:
  /// @throws InputError if it cannot be opened
  explicit BinaryFile(const std::string& name);
  BinaryFile(BinaryFile&& other) noexcept;
  BinaryFile& operator=(BinaryFile&&) = delete;
  ~BinaryFile();

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }
  /// All bytes from `begin` on that the span holds. @throws InputError if the file ends before
  void read(std::int64_t begin, std::span<unsigned char> bytes) const;
  std::uint32_t big_endian(std::int64_t begin) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace stepcast
