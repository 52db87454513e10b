#include "validate/measure/storage_benchmark.hpp"

#include <algorithm>

#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/runs/input_loader.hpp"
#include "validate/measure/link_benchmark.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kSizes[] = {4096, 1 << 20, 4 << 20, 16 << 20};  // bytes

}  // namespace

std::vector<Row> measure_storage(Transport& transport, const std::filesystem::path& folder, double budget) {
  RankInput input(folder, kSizes[3]);
  std::vector<Row> rows;
  for (const std::int64_t size : kSizes) {
    const Repeats repeats = time_repeated(transport, budget, [&] { input.read(size); });
    if (transport.rank() == 0) rows.push_back(link_row("storage", "", static_cast<double>(size), repeats));
  }
  return rows;
}

std::optional<MeasuredStorage> measured_storage(const Results& results, int sharing) {
  double least_bytes = 0, least = 0, most_bytes = 0, most = 0;
  for (const Row& row : results.rows) {
    if (row.text("what") != "storage") continue;
    const double bytes = row.number("bytes").value_or(0), seconds = row.number("seconds").value_or(0);
    if (least_bytes == 0 || bytes < least_bytes) least_bytes = bytes, least = seconds;
    if (bytes > most_bytes) most_bytes = bytes, most = seconds;
  }
  if (most_bytes <= least_bytes || most <= least) return std::nullopt;
  const double rate = (most_bytes - least_bytes) / (most - least);
  return MeasuredStorage{{sharing * rate}, {std::max(0.0, least - least_bytes / rate)}};
}

}  // namespace stepcast
