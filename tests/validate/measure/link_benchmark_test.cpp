#include "validate/measure/link_benchmark.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <mutex>

#include "../../runtime/ranks.hpp"

namespace stepcast::storage_benchmark_test {
namespace {

Results reads(const std::vector<std::pair<double, double>>& times) {
  Results results;
  for (const auto& [bytes, seconds] : times) {
    Row row;
    row.set("what", "storage");
    row.set("bytes", bytes);
    row.set("seconds", seconds);
    results.rows.push_back(row);
  }
  return results;
}

}  // namespace

TEST_CASE("the storage of measured reads is latency + bytes of all ranks / bandwidth", "[validate]") {
  const auto seconds = [](double bytes) { return 2e-4 + bytes / 500e6; };
  const Results results = reads({{4096, seconds(4096)}, {1e6, seconds(1e6)}, {16e6, seconds(16e6)}});
  const auto storage = measured_storage(results, 3);
  REQUIRE(storage);
  CHECK(storage->latency.value == Approx(2e-4));
  CHECK(storage->bandwidth.value == Approx(1500e6));
  CHECK_FALSE(measured_storage({}, 3));
}

TEST_CASE("ranks measure their reads at once, by rising size", "[validate]") {
  std::vector<Row> rows;
  run_ranks("memory", 2, [&](Transport& transport, Transport&) {
    auto measured = measure_storage(transport, std::filesystem::temp_directory_path(), 0.01);
    if (transport.is_rank_0()) rows = std::move(measured);
  });
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].text("what") == "storage");
    CHECK(rows[i].number("seconds").value_or(0) > 0);
    if (i > 0) CHECK(*rows[i].number("bytes") > *rows[i - 1].number("bytes"));
  }
}

}  // namespace stepcast::storage_benchmark_test
