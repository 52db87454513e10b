#include "runtime/rendezvous/store.hpp"

#include <fmt/format.h>

namespace stepcast {

std::string store_timeout_text(int rank, const std::string& key, const std::string& where, double seconds) {
  return fmt::format("rank {} put no {} into the store {} within {:g} s", rank, key, where, seconds);
}

std::string store_repeated_text(int rank, const std::string& key, const std::string& where) {
  return fmt::format("rank {} has put {} into the store {} before", rank, key, where);
}

}  // namespace stepcast
