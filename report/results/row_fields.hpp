#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "report/results/results.hpp"

namespace stepcast {

/// The cells of a row that was read from a file with one row a line. All members throw InputError
/// `FILE:LINE:1: COLUMN: expected WHAT, got WHAT` for a missing cell or one of another type.
class RowFields {
 public:
  RowFields(const Row& row, std::string_view file, std::size_t line) : row_(row), file_(file), line_(line) {}

  double number(const char* column) const;
  double positive(const char* column) const;                     ///< a number above 0
  std::optional<double> maybe_number(const char* column) const;  ///< none if the row has no such cell
  std::int64_t integer(const char* column) const;
  std::int64_t integer(const char* column, std::int64_t otherwise) const;
  std::string text(const char* column) const;
  std::string text(const char* column, const char* otherwise) const;
  bool flag(const char* column) const;  ///< false if the row has no such cell

  [[noreturn]] void refuse(const char* column, std::string_view expected) const;

 private:
  const Row& row_;
  std::string_view file_;
  std::size_t line_;
};

/// The rows of a file of JSON lines as measurements of one kind. @param read  makes one from a RowFields
template <class Read>
auto read_rows(const Results& results, std::string_view file, const Read& read) {
  std::vector<decltype(read(std::declval<const RowFields&>()))> all;
  for (std::size_t i = 0; i < results.rows.size(); ++i)
    all.push_back(read(RowFields(results.rows[i], file, i + 1)));
  return all;
}

}  // namespace stepcast
