#include "core/expects.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace stepcast {

void refuse_caller(const char* what, const char* file, int line) {
  throw std::logic_error(fmt::format("{}:{}: expected of the caller: {}", file, line, what));
}

}  // namespace stepcast
