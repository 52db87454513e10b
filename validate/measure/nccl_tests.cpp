#include "validate/measure/nccl_tests.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace stepcast {

Seconds NcclTestsRow::time() const {
  if (!in_place) return *out_of_place;
  return out_of_place ? std::min(*out_of_place, *in_place) : *in_place;
}

std::string NcclTests::doubts() const {
  std::string text;
  if (wrong_rows > 0)
    text = fmt::format("{} of {} rows have wrong results (#wrong)", wrong_rows, rows.size());
  const bool other = std::ranges::any_of(types, [](const std::string& type) { return type != "float"; });
  if (other)
    text += fmt::format("{}rows of {} count by their bytes, as those of float", text.empty() ? "" : "; ",
                        fmt::join(types, ", "));
  return text;
}

std::string nccl_operation_in(const std::string& line) {
  const auto end = line.find("_perf");
  if (end == std::string::npos) return "";
  auto begin = end;
  while (begin > 0 &&
         (std::islower(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_'))
    --begin;
  return line.substr(begin, end - begin);
}

}  // namespace stepcast
