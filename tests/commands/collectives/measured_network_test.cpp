#include "commands/collectives/measured_network.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

const std::vector<Bytes> kSizes{{8192}, {262144}, {4194304}, {1073741824}};

Platform two_nodes() {
  Library library;
  return platform_with(library, "dgx1v", {});
}

/// The times of the model over 16 ranks as nccl-tests prints them, `times` as long.
std::string printed_table(double times) {
  const Platform platform = two_nodes();
  const auto rows =
      collective_rows(platform, first_devices(platform, 16, 8), NcclOperation::all_reduce, kSizes);
  std::string text =
      "# Collective test starting: all_reduce_perf\n# size count type redop root time algbw busbw #wrong\n";
  for (const CollectiveRow& row : rows) {
    const double seconds = times * row.estimate.time.value, rate = row.size.value / seconds / 1e9;
    text +=
        fmt::format("{:.0f} {:.0f} float sum -1 {:.3f} {:.4f} {:.4f} 0\n", row.size.value, row.size.value / 4,
                    1e6 * seconds, rate, bus_factor(NcclOperation::all_reduce, 16) * rate);
  }
  return text;
}

}  // namespace

TEST_CASE("a table of nccl-tests is likely by how far the network of a draw is off", "[commands]") {
  const TemporaryFolder folder;
  const auto table = [&](double times) {
    const std::string file = (folder.path() / "table.txt").string();
    write_atomically(file, printed_table(times));
    return measured_files({file}).network;
  };
  CHECK(log_likelihood(table(1), two_nodes()) == Approx(0).margin(1e-3));
  const double miss = std::log(1.3);
  CHECK(log_likelihood(table(1.3), two_nodes()) ==
        Approx(-0.5 * (std::pow(miss / 0.10, 2) + std::pow(miss / 0.16, 2))).epsilon(0.01));
  const auto lines = measured_network_lines(table(1 / 1.3), two_nodes());
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("all_reduce over 16 ranks") != std::string::npos);
  CHECK(lines[0].ends_with(" +30 % from 1 MiB on +30 % below"));
}

TEST_CASE("a table that does not name its collective is asked for it", "[commands]") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "table.txt").string(), table = printed_table(1);
  write_atomically(file, table.substr(table.find('\n') + 1));
  CHECK_THROWS_WITH(measured_files({file}),
                    Catch::Matchers::Contains("write it before the file, such as all_reduce="));
  CHECK(measured_files({"all_reduce=" + file}).network.front().ranks == 16);
  write_atomically(file, "workers,step_seconds\n8,0.1\n");
  const MeasuredFiles runs = measured_files({"8=" + file});
  CHECK(runs.network.empty());
  CHECK(runs.runs.at(0).runs.rows.size() == 1);
}

TEST_CASE("a table whose ranks cannot be told takes those before the file", "[commands]") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "table.txt").string();
  write_atomically(file,
                   "# Collective test starting: all_reduce_perf\n# size count type redop root time algbw "
                   "busbw #wrong\n8192 2048 float sum -1 35.0 0.23 0.44 0\n");
  CHECK_THROWS_WITH(measured_files({file}), Catch::Matchers::Contains("such as 16=" + file));
  CHECK(measured_files({"16=" + file}).network.front().ranks == 16);
}

TEST_CASE("a profile of PyTorch is no measured run, and the error says how a forecast learns from it",
          "[errors]") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "profile.json").string();
  for (const char* text : {"{\"traceEvents\": []}", "\x1f\x8b\x08"}) {
    write_atomically(file, text);
    CHECK_THROWS_WITH(measured_files({file}), Catch::Contains("stepcast import " + file + " --model MODEL"));
  }
}
