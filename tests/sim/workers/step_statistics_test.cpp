#include "sim/workers/step_statistics.hpp"

#include <catch2/catch.hpp>

namespace stepcast::step_statistics_test {

TEST_CASE("records count until a program's last step, those of its date included", "[sim]") {
  RunRecords book;
  book.add("a", 1, 0.5);
  book.step_ended(0, 1);
  book.add("a", 2, 1);  // at the same date, after it
  book.add("b", 3, 1);
  book.step_ended(1, 1);
  book.add("a", 4, 2);
  book.step_ended(1, 3);
  book.add("c", 5, 3);
  book.add("c", 6, 4);

  const auto first = book.counts_at_end(0);
  CHECK(first == std::map<std::string, std::size_t>{{"a", 2}, {"b", 1}, {"c", 0}});
  CHECK(book.counts_at_end(1) == std::map<std::string, std::size_t>{{"a", 3}, {"b", 1}, {"c", 1}});
  const Records early = first_records(book.take(), first);
  CHECK(early == Records{{"a", {1, 2}}, {"b", {3}}, {"c", {}}});
}

TEST_CASE("a program that ends its last step at the end of a run has all records", "[sim]") {
  RunRecords book;
  book.add("a", 1, 1);
  book.step_ended(2, 1);
  book.add("a", 2, 1);
  CHECK(book.counts_at_end(2).at("a") == 2);
  CHECK(book.counts_at_end(0).at("a") == 0);  // ended none
}

}  // namespace stepcast::step_statistics_test
