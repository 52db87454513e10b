#include "report/timeline/gzip_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <streambuf>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/os/files.hpp"

namespace stepcast {
namespace {

/// A stream buffer over a file of zlib. Mode "wT" writes plain text.
class PackedBuffer : public std::streambuf {
 public:
  PackedBuffer(const std::filesystem::path& file, bool packed)
      : file_(gzopen(file.c_str(), packed ? "wb6" : "wbT")) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  PackedBuffer(const PackedBuffer&) = delete;
  PackedBuffer& operator=(const PackedBuffer&) = delete;
  ~PackedBuffer() override { close(); }

  /// @return whether everything was written
  bool close() {
    if (file_ == nullptr) return false;
    const bool written = flush();
    const bool closed = gzclose(std::exchange(file_, nullptr)) == Z_OK;
    return written && closed;
  }

 protected:
  int_type overflow(int_type next) override {
    if (!flush()) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(next);
      pbump(1);
    }
    return traits_type::not_eof(next);
  }

 private:
  bool flush() {
    const unsigned size = pptr() - pbase();
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return file_ != nullptr && (size == 0 || gzwrite(file_, buffer_.data(), size) == static_cast<int>(size));
  }

  gzFile file_;
  std::array<char, 65536> buffer_;
};

}  // namespace

void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write) {
  auto temporary = file;
  temporary += ".tmp";
  errno = 0;
  const auto buffer = std::make_unique<PackedBuffer>(temporary, file.extension() == ".gz");
  std::ostream out(buffer.get());
  write(out);
  const bool complete = out.good();
  if (!buffer->close() || !complete) {
    const int error = errno == 0 ? EIO : errno;
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    const std::string line =
        fmt::format("{}: cannot write: {}", file.string(), std::generic_category().message(error));
    if (error == ENOSPC || error == EDQUOT) throw DiskFull(line);
    throw InputError(line);
  }
  replace_file(temporary, file);
}

}  // namespace stepcast
