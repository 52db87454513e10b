#include "report/text/narrow_tables.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

namespace {

const std::string kTable =
    "layer  kind         fwd GFLOP  output MB\n"
    "conv1  convolution        1.5          2\n"
    "fc     dense                         0.5\n";

}  // namespace

TEST_CASE("a table that is too wide becomes several, each with the first column", "[report]") {
  CHECK(with_narrow_tables(kTable, 30) ==
        "layer  kind         fwd GFLOP\n"
        "conv1  convolution        1.5\n"
        "fc     dense\n"
        "\n"
        "layer  output MB\n"
        "conv1          2\n"
        "fc           0.5\n");
  CHECK(with_narrow_tables(kTable, 40) == kTable);
  CHECK(with_narrow_tables(kTable, 0) == kTable);
}

TEST_CASE("columns that are each too wide stand alone below one another", "[report]") {
  CHECK(with_narrow_tables("a  bbbbbbbb  c\n1  22222222  3\n", 4) ==
        "a  bbbbbbbb\n1  22222222\n\na  c\n1  3\n");
}

TEST_CASE("prose, labelled lines and the end of a text stay as they are", "[report]") {
  const std::string text = "name: one sample is one image, from a long description\n\n" + kTable +
                           "\nparameters   592 trainable in two tensors of all\nwork         nothing\n\nend";
  const std::string narrow = with_narrow_tables(text, 30);
  CHECK(narrow.starts_with("name: one sample is one image, from a long description\n\nlayer  kind"));
  CHECK(
      narrow.ends_with("\n\nparameters   592 trainable in two tensors of all\nwork         nothing\n\nend"));
  CHECK(with_narrow_tables("", 30).empty());
}
