#include "runtime/rendezvous/store.hpp"

#include <fmt/format.h>

namespace stepcast {

std::string store_timeout_text(int rank, const std::string& key, const std::string& where, double seconds) {
  return fmt::format("rank {} put no {} into the store {} within {:g} s", rank, key, where, seconds);
}

}  // namespace stepcast
