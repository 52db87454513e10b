#include "core/os/standard_input.hpp"

#include <iostream>

#include "core/error.hpp"

namespace stepcast {

bool is_standard_input(const std::filesystem::path& file) {
  return file == "-";
}

const std::string& standard_input() {
  static const std::string text = [] {
    constexpr std::size_t kMostBytes = 1 << 20;
    std::string all(kMostBytes + 1, '\0');
    std::cin.read(all.data(), static_cast<std::streamsize>(all.size()));
    all.resize(static_cast<std::size_t>(std::cin.gcount()));
    if (all.size() > kMostBytes) throw InputError("standard input: larger than 1 MiB");
    return all;
  }();
  return text;
}

}  // namespace stepcast
