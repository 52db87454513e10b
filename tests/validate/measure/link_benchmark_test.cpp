#include "validate/measure/link_benchmark.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "../../runtime/ranks.hpp"

namespace stepcast::storage_benchmark_test {
namespace {

LinkMeasurements reads(const std::vector<std::pair<double, double>>& times) {
  LinkMeasurements results;
  for (const auto& [bytes, seconds] : times) {
    LinkMeasurement& one = results.emplace_back(LinkMeasurement{LinkMeasurement::What::storage});
    one.bytes = bytes;
    one.seconds = seconds;
  }
  return results;
}

}  // namespace

TEST_CASE("the storage of measured reads is latency + bytes of all ranks / bandwidth", "[validate]") {
  const auto seconds = [](double bytes) { return 2e-4 + bytes / 500e6; };
  const LinkMeasurements results = reads({{4096, seconds(4096)}, {1e6, seconds(1e6)}, {16e6, seconds(16e6)}});
  const auto storage = measured_storage(results, 3);
  REQUIRE(storage);
  CHECK(storage->latency.value == Approx(2e-4));
  CHECK(storage->bandwidth.value == Approx(1500e6));
  CHECK_FALSE(measured_storage({}, 3));
}

TEST_CASE("compute beside loads is slower by the time that it loses while they last", "[validate]") {
  const auto load = [](double bytes) { return 2e-3 + bytes / 500e6; };
  LinkMeasurements results = reads({{4096, load(4096)}, {8e6, load(8e6)}});  // 4e6 bytes take 10 ms
  CHECK(load_slowdown(results) == 1);
  LinkMeasurement& beside = results.emplace_back(LinkMeasurement{LinkMeasurement::What::compute_beside_load});
  beside.bytes = 4e6;
  beside.seconds = 2e-3;
  CHECK(load_slowdown(results) == Approx(10.0 / 8));
  beside.seconds = -1e-3;  // noise: compute was not slower
  CHECK(load_slowdown(results) == 1);
}

namespace {

using Measure = std::function<LinkMeasurements(Transport&, PollingPolicy&)>;

/// Rows of two ranks.
LinkMeasurements measured(const Measure& measure) {
  LinkMeasurements rows;
  std::array<PollingPolicy, 2> polling;
  run_ranks("memory", 2, [&](Transport& transport, Transport&) {
    PollingPolicy& own = polling.at(transport.rank().index());
    auto own_rows = measure(transport, own);
    CHECK(own.pending_loads == 0);
    if (transport.is_rank_0()) rows = std::move(own_rows);
  });
  return rows;
}

std::function<void()> sleeping(double seconds) {
  return [=] { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
}

}  // namespace

TEST_CASE("ranks measure their loads at once, by rising size", "[validate]") {
  const LinkMeasurements rows = measured([](Transport& transport, PollingPolicy& polling) {
    return measure_storage(transport, polling, std::filesystem::temp_directory_path(), sleeping(1e-4));
  });
  REQUIRE(rows.size() == 5);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK((rows[i].what == LinkMeasurement::What::storage));
    CHECK(rows[i].seconds > 0);
    if (i > 0) CHECK(rows[i].bytes > rows[i - 1].bytes);
  }
}

TEST_CASE("ranks measure how much longer a computation takes beside a load that fits into it", "[validate]") {
  LinkMeasurements storage =
      reads({{4096, 1e-4}, {16 << 20, 20e-3}});  // loads of up to 12 MiB fit into 20 ms
  const LinkMeasurements rows = measured([&](Transport& transport, PollingPolicy& polling) {
    return measure_compute_beside_load(transport, polling, std::filesystem::temp_directory_path(),
                                       sleeping(0.02), storage);
  });
  REQUIRE(rows.size() == 1);
  CHECK((rows.back().what == LinkMeasurement::What::compute_beside_load));
  CHECK(rows.back().bytes >= 1 << 20);
  CHECK(rows.back().stolen_seconds.has_value());
  storage.push_back(rows.back());
  CHECK(load_slowdown(storage) >= 1);
}

}  // namespace stepcast::storage_benchmark_test
