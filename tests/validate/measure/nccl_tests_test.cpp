#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "validate/measure/benchmark_readers.hpp"

using namespace stepcast;

namespace {

// Invented numbers in the formats that nccl-tests printed over the years.
const std::string kNew =
    "# Collective test starting: all_gather_perf\n#  Rank  0 Group  0 Pid 1 on n device  0 [0x07] GPU\n"
    "#  Rank  1 Group  0 Pid 2 on n device  1 [0x0b] GPU\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong\n"
    "n:1:2 [0] NCCL INFO Launch mode Parallel\n"
    "           0             0     float    none      -1     0.16    0.00    0.00      0     0.14    0.00   "
    " 0.00      0\n"
    "        1024           128     float    none      -1    20.00    0.05    0.03      0    19.00    0.05   "
    " 0.03    N/A\n"
    "        2048           256     float    none      -1    21.00    0.10    0.05      0      N/A    0.05   "
    " 0.03    N/A\n";
const std::string kOld =
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  "
    "error\n"
    "        1024           256   float     sum    20.00    0.05    0.10  5e-07    22.00    0.05    0.10  "
    "5e-07\n";
const std::string kOldest =
    "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n"
    "        1024           256   float    20.00    0.05    0.05  0e+00    18.00    0.06    0.06  0e+00\n";

std::string error_of(const std::string& text) {
  try {
    read_nccl_tests(text, "t.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the table of nccl-tests is read with its operation and ranks", "[validate][nccl]") {
  const NcclTests tests = read_nccl_tests(kNew, "t.txt");
  CHECK(tests.operation == "all_gather");
  CHECK(tests.ranks == 2);
  REQUIRE(tests.rows.size() == 2);
  CHECK(tests.rows[0].size.value == 1024);
  CHECK(tests.rows[0].out_of_place->value == Approx(20e-6));
  CHECK(tests.rows[0].time().value == Approx(19e-6));
  CHECK(tests.rows[1].time().value == Approx(21e-6));
}

TEST_CASE("old headers have fewer columns", "[validate][nccl]") {
  CHECK(read_nccl_tests(kOld, "t.txt").rows[0].time().value == Approx(20e-6));
  CHECK(read_nccl_tests(kOldest, "t.txt").rows[0].time().value == Approx(18e-6));
  const std::string row = kOld.substr(kOld.find('\n') + 1);
  CHECK(read_nccl_tests(row, "t.txt").rows[0].in_place->value == Approx(22e-6));  // without its header
  CHECK(nccl_tests_time_columns("# size count type redop time algbw") == std::vector<std::size_t>{4});
  CHECK(nccl_tests_time_columns("# out-of-place in-place").empty());
}

TEST_CASE("calibrate reads the time of old headers, not the bandwidth beside it", "[validate][nccl]") {
  const std::string second =
      "        4096          1024   float     sum    30.00    0.13    0.20  5e-07    31.00    0.13    0.20  "
      "5e-07\n";
  const BenchmarkTimes read = read_benchmark(kOld + second, "all_reduce_perf.txt", 2);
  CHECK(read.times.at(0).time.value == Approx(10e-6));  // half of an all-reduce over two ranks
}

TEST_CASE("the JSON of nccl-tests is read too", "[validate][nccl]") {
  const NcclTests tests = read_nccl_tests(
      R"({"args": ["/opt/all_reduce_perf"], "config": {"devices": [{}, {}, {}]},
          "results": [{"size": 8, "out_of_place": {"time": 1.5}}, {"size": 16, "out_of_place": null, "in_place": {"time": 2}}]})",
      "t.json");
  CHECK(tests.operation == "all_reduce");
  CHECK(tests.ranks == 3);
  REQUIRE(tests.rows.size() == 2);
  CHECK(tests.rows[1].time().value == Approx(2e-6));
}

TEST_CASE("what is no table of nccl-tests is refused", "[validate][nccl][errors]") {
  CHECK(error_of("") == "t.txt:1:1: expected a table of nccl-tests: no row has a size and a time");
  CHECK(error_of("{\"a\": 1}").find("expected the JSON of nccl-tests") != std::string::npos);
  CHECK(error_of("{").find("expected the JSON of nccl-tests") != std::string::npos);
  const std::string bad =
      "# size count type redop time algbw busbw error\n 1024 256 float sum fast 0.05 0.05 0\n";
  CHECK(error_of(bad) == "t.txt:2:1: expected a time in us, got \"fast\"");
  CHECK(error_of("# size count type redop time algbw busbw error\n 1024 256 float sum 0 0.05 0.05 0\n") ==
        "t.txt:2:1: expected a time above 0");
}
