#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace stepcast {

/// Runs what may refuse its input. Anything but a refusal is a fault, and ends the program.
template <class Read>
void refuses_or_reads(const Read& read) {
  try {
    read();
  } catch (const InputError&) {
  } catch (const LimitError&) {
  }
}

/// Gives `read` the first byte of an input, which names a reader, and the text after it.
template <class Read>
int read_by_name(const std::uint8_t* data, std::size_t size, const Read& read) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  refuses_or_reads([&] { read(data[0], text); });
  return 0;
}

/// A file in memory, for what is read by name.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    if (write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(1);
  }
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  std::string name() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace stepcast
