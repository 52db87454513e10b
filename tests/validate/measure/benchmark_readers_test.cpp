#include "validate/measure/benchmark_readers.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "core/error.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

namespace {

// Invented numbers in the format that the programs print.
const char* const kNccl = R"(# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 4 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 1 iters: 20
# Using devices
#  Rank  0 Group  0 Pid   100 on       node device  0 [0000:01:00] GPU
#  Rank  1 Group  0 Pid   100 on       node device  1 [0000:02:00] GPU
#  Rank  2 Group  0 Pid   100 on       node device  2 [0000:03:00] GPU
#  Rank  3 Group  0 Pid   100 on       node device  3 [0000:04:00] GPU
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
        4096          1024     float     sum      -1    60.00    0.07    0.10       0    59.00    0.07    0.10       0
        8192          2048     float     sum      -1    66.00    0.12    0.19       0    65.00    0.13    0.19       0
# Out of bounds values : 0 OK
)";

const char* const kNcclJson = R"({"version": 1, "args": ["./build/sendrecv_perf", "-J", "out.json"],
 "config": {"devices": [{"rank": 0}, {"rank": 1}]},
 "results": [{"size": 1024, "count": 256, "out_of_place": {"time": 12.5, "alg_bw": 0.08}, "in_place": null},
             {"size": 2048, "count": 512, "out_of_place": null, "in_place": {"time": 14.0}}]})";

}  // namespace

TEST_CASE("an all-reduce of nccl-tests counts as the messages of a ring", "[validate][links]") {
  const BenchmarkTimes read = read_benchmark(kNccl, "out.txt", 0);
  CHECK(read.ranks == 4);
  REQUIRE(read.times.size() == 2);
  CHECK(read.times[0].size.value == 1024);               // S / P
  CHECK(read.times[0].time.value == Approx(59e-6 / 6));  // T / (2 (P - 1)), in place
  CHECK(read.times[1].time.value == Approx(65e-6 / 6));
}

TEST_CASE("the JSON of nccl-tests is read", "[validate][links]") {
  const BenchmarkTimes read = read_benchmark(kNcclJson, "out.json", 0);
  CHECK(read.ranks == 2);
  REQUIRE(read.times.size() == 2);
  CHECK(read.times[0].time.value == Approx(12.5e-6));
  CHECK(read.times[1].time.value == Approx(14e-6));
}

TEST_CASE("latency, bandwidth and all-reduce of the OSU micro-benchmarks are read", "[validate][links]") {
  const auto latency = read_benchmark(
      "# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n1  0.28\n4194304   880.00\n", "l", 0);
  CHECK(latency.times[0].time.value == Approx(0.28e-6));
  const auto rate = read_benchmark(
      "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n1  10.00\n1000000   5000.00\n", "b", 0);
  CHECK(rate.times[1].time.value == Approx(200e-6));
  const std::string sum =
      "# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n4  1.6\n1048576   600.0\n";
  const auto reduced = read_benchmark(sum, "a", 2);
  CHECK(reduced.times[1].size.value == 524288);
  CHECK(reduced.times[1].time.value == Approx(300e-6));
  CHECK_THROWS_WITH(
      read_benchmark(sum, "a", 0),
      "a:1:1: the file does not say how many ranks this all-reduce had: give --ranks N (2 or more)");
}

TEST_CASE("benchmark times become a readable platform file, however small or uneven they are",
          "[validate][links]") {
  const std::string sums = "# OSU MPI Allreduce Latency Test\n4  1.6\n8  1.7\n1048576  600.0\n";  // 1/16 B
  const std::string uneven = "# OSU MPI Latency Test\n8 1\n16 500000\n1000000000 600000\n";
  for (const std::string& text : {sums, uneven}) {
    const BenchmarkTimes read = read_benchmark(text, "a", 64);
    MeasuredPlatform measured;
    measured.name = "a: [b";
    measured.source = read.what;
    measured.cluster.kind = Cluster::Kind::netcluster;
    measured.links = fitted_link_table(read.times);
    const YamlNode root = parse_yaml(platform_text(measured), "written.yaml");
    const Platform platform = read_platform(YamlValue(root, ""), {});
    CHECK(platform.name == "a: [b");
    CHECK(platform.message_costs.size() == 3);
    for (std::size_t i = 1; i < read.times.size(); ++i)  // the smallest size shares a line with the next
      CHECK(message_time(measured.links, read.times[i].size).value == Approx(read.times[i].time.value));
  }
}

TEST_CASE("a file that is not a benchmark is refused with its line", "[validate][links][errors]") {
  CHECK_THROWS_WITH(read_benchmark("hello\n", "x.txt", 2),
                    "x.txt:1:1: expected a table of nccl-tests: no row has a size and a time");
  CHECK_THROWS_WITH(read_benchmark("# OSU MPI Latency Test\n1 0.5\n2 fast\n", "x.txt", 2),
                    "x.txt:3:1: expected a number, got \"fast\"");
  CHECK_THROWS_WITH(read_benchmark("# OSU MPI Latency Test\n1\n", "x.txt", 2),
                    "x.txt:2:1: expected a size and a time");
  CHECK_THROWS_WITH(read_benchmark("{\"args\": []}", "x.json", 2),
                    Catch::StartsWith("x.json:1:1: expected the JSON of nccl-tests"));
  CHECK_THROWS_WITH(read_benchmark("# OSU MPI Latency Test\n1 0.5\n", "x.txt", 2),
                    "x.txt:1:1: expected rows of at least two sizes");
  CHECK_THROWS_WITH(read_benchmark("# OSU MPI Latency Test\n8 0.5\n8 0.6\n", "x.txt", 2),
                    "x.txt:1:1: expected rows of at least two sizes");
  CHECK_THROWS_WITH(
      read_benchmark("# OSU MPI Bandwidth Test\n8 0.5\n16 1e-300\n", "x.txt", 2),
      "x.txt:1:1: expected a time between 1e-12 and 1e6 s for a message, got 1.6e+295 s for 16 bytes");
  CHECK_THROWS_WITH(
      read_benchmark("# OSU MPI Latency Test\n8 5.0\n10 36548755.0\n", "x.txt", 2),
      "x.txt:1:1: expected between 1 and 1e17 bytes a second, got 36.5488 s for a message of 10 bytes");
  CHECK_THROWS_WITH(
      read_benchmark(
          R"({"args": ["sendrecv_perf"], "results": [{"size": 1e300, "out_of_place": {"time": 1}}]})",
          "x.json", 2),
      "x.json:1:1: expected a size, got 1e+300");
}

}  // namespace stepcast

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
  CHECK(tests.algorithm_bandwidth == 0.10);  // the greatest, and what stands beside it
  CHECK(tests.bus_bandwidth == 0.05);
}

TEST_CASE("old headers have fewer columns", "[validate][nccl]") {
  CHECK(read_nccl_tests(kOld, "t.txt").rows[0].time().value == Approx(20e-6));
  CHECK(read_nccl_tests(kOldest, "t.txt").rows[0].time().value == Approx(18e-6));
  const std::string row = kOld.substr(kOld.find('\n') + 1);
  CHECK(read_nccl_tests(row, "t.txt").rows[0].in_place->value == Approx(22e-6));  // without its header
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
  const std::string expected =
      "t.txt:2:1: expected size, count, type, a time in us and algbw = size / time in GB/s";
  CHECK(error_of(bad) == expected);
  CHECK(error_of("# size count type redop time algbw busbw error\n 1024 256 float sum 0 0.05 0.05 0\n") ==
        expected);
  CHECK(error_of("# size count type redop time algbw busbw error\n 1024 256 float sum 20 0.09 0.09 0\n") ==
        expected);
}

TEST_CASE("a row without its redop is read by the column whose time gives algbw", "[validate][nccl]") {
  const NcclTests tests = read_nccl_tests(
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  "
      "error\n"
      "     2097152         16384   float            700.0    3.00    2.62  0e+00   690.0    3.04    2.66  "
      "0e+00\n",
      "t.txt");
  CHECK(tests.rows[0].out_of_place->value == Approx(700e-6));
  CHECK(tests.rows[0].in_place->value == Approx(690e-6));
  CHECK(tests.bus_bandwidth == 2.62);
}

TEST_CASE("the ranks that launchers put before lines are left out", "[validate][nccl]") {
  std::string open_mpi, slurm;
  std::istringstream lines(kNew);
  for (std::string line; std::getline(lines, line);) {
    open_mpi += "[1,0]<stdout>:" + line + "\n";
    slurm += " 0: " + line + "\n";
  }
  for (const std::string& text : {open_mpi, slurm}) {
    const NcclTests tests = read_nccl_tests(text, "t.txt");
    CHECK(tests.operation == "all_gather");
    CHECK(tests.ranks == 2);
    CHECK(tests.nodes == 1);
    CHECK(tests.rows.size() == 2);
    CHECK(read_benchmark(text, "t.txt", 0).times[0].time.value == Approx(19e-6));  // P - 1 = 1 message
  }
}

TEST_CASE("a table's wrong results and several types are named, and a second table is refused",
          "[validate][nccl][errors]") {
  const std::string header =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  const std::string row =
      "     1048576        262144     float     sum      -1    35.00   29.96   52.43      ";
  const std::string half =
      "     2097152       1048576      half     sum      -1    70.00   29.96   52.43      0\n";
  CHECK(read_nccl_tests(header + row + "0\n", "t.txt").doubts().empty());
  CHECK(read_nccl_tests(header + half, "t.txt").doubts() ==
        "rows of half count by their bytes, as those of float");
  CHECK(read_nccl_tests(header + row + "7\n", "t.txt").doubts() == "1 of 1 rows have wrong results (#wrong)");
  CHECK(read_nccl_tests(header + row + "0\n" + half, "t.txt").doubts() ==
        "rows of float, half count by their bytes, as those of float");
  CHECK(read_benchmark(header + row + "7\n" + half, "all_reduce_perf.txt", 8).what ==
        "all_reduce_perf of nccl-tests; 1 of 2 rows have wrong results (#wrong); rows of float, half "
        "count by their bytes, as those of float");
  CHECK_THROWS_WITH(read_nccl_tests(header + row + "0\n" + header + half, "t.txt"),
                    "t.txt:3:1: a second table begins here: give one table in a file");
  CHECK(
      read_nccl_tests(
          R"({"args": ["all_reduce_perf"], "results": [{"size": 8, "type": "float", "in_place": {"time": 1.5, "nwrong": 3}}]})",
          "t.json")
          .wrong_rows == 1);
  CHECK_THROWS_WITH(read_benchmark(kNew, "t.txt", 16),
                    "t.txt:1:1: --ranks: the table lists 2 ranks, got 16; take the list out if it is cut");
}

TEST_CASE("each process in the JSON of nccl-tests has its threads' and GPUs' ranks", "[validate][nccl]") {
  const NcclTests tests = read_nccl_tests(
      R"({"args": ["all_reduce_perf"], "config": {"nthreads": 1, "ngpus": 8, "devices": [{"hostname": "a"}, {"hostname": "b"}]},
          "results": [{"size": 1048576, "type": "float", "out_of_place": {"time": 50, "alg_bw": 20.97, "bus_bw": 39.32, "nwrong": null}}]})",
      "t.json");
  CHECK(tests.ranks == 16);
  CHECK(tests.nodes == 2);
  CHECK(tests.algorithm_bandwidth == 20.97);
  CHECK(tests.bus_bandwidth == 39.32);
  CHECK(tests.doubts().empty());
}

TEST_CASE("columns of single iterations are left out, and times of the host and split ranks refused",
          "[validate][nccl][errors]") {
  const std::string start = "#       size         count      type   redop    root     ";
  const NcclTests each =
      read_nccl_tests(start +
                          "time   algbw   busbw #wrong   i_min   i_max   i_p99   i_cv%     time   algbw   "
                          "busbw #wrong   i_min   i_max   i_p99   i_cv%\n"
                          "     1048576        262144     float     sum      -1    35.00   29.96   52.43     "
                          " 0    33.00   36.00   36.00    2.10"
                          "    34.00   30.84   53.97      0    33.00   36.00   36.00    2.10\n",
                      "t.txt");
  CHECK(each.rows[0].out_of_place->value == Approx(35e-6));
  CHECK(each.rows[0].in_place->value == Approx(34e-6));
  CHECK(each.wrong_rows == 0);
  CHECK_THROWS_WITH(read_nccl_tests(start + "cputime   algbw   busbw #wrong\n", "t.txt"),
                    "t.txt:1:1: cputime is the time of the host's calls: run nccl-tests without -C");
  std::string split = kNew;
  split.replace(split.rfind("Group  0"), 8, "Group  1");
  CHECK_THROWS_WITH(read_nccl_tests(split, "t.txt"),
                    Catch::Matchers::Contains("its ranks run in 2 groups at once"));
}

TEST_CASE("the hosts of a table are those in its list of devices", "[validate][nccl]") {
  std::string text = kNew;
  text.replace(text.find("on n device  1 [0x0b]"), 4, "on m");
  CHECK(read_nccl_tests(text, "t.txt").nodes == 2);
}

TEST_CASE("the collective is that of the header or the option, and nothing else",
          "[validate][nccl][errors]") {
  const NcclTests unnamed = read_nccl_tests(kOld, "t.txt"), gather = read_nccl_tests(kNew, "t.txt");
  CHECK(collective_of(unnamed, "broadcast", "t.txt") == "broadcast");
  CHECK(collective_of(gather, "", "t.txt") == "all_gather");
  CHECK_THROWS_WITH(collective_of(unnamed, "", "t.txt"),
                    "t.txt:1:1: the table does not name its collective: give --collective");
  CHECK(read_nccl_tests("+ mpirun -np 16 ./build/reduce_scatter_perf -b 8\n" + std::string(kOld), "t.txt")
            .operation == "reduce_scatter");
  CHECK(read_nccl_tests("node1: gpu_perf on\n" + std::string(kOld), "t.txt").operation.empty());
  CHECK_THROWS_WITH(collective_of(gather, "all_reduce", "t.txt"),
                    "t.txt:1:1: --collective: the table is of all_gather_perf, got all_reduce");
}

TEST_CASE("a second table of OSU is refused, and rows that failed are named", "[validate][links][errors]") {
  const std::string bandwidth =
      "# OSU MPI Bandwidth Test v5.9\n# Size Bandwidth (MB/s)\n1 3.0\n1048576 11000\n";
  const std::string latency = "# OSU MPI Latency Test v5.9\n# Size Latency (us)\n1 1.5\n1048576 98\n";
  CHECK_THROWS_WITH(read_benchmark(bandwidth + latency, "t.txt", 0),
                    "t.txt:5:1: a second table begins here: give one table in a file");
  const BenchmarkTimes failed = read_benchmark(
      "# OSU MPI Allreduce Latency Test v7.2\n# Size Avg Latency(us) Validation\n4 5.0 Pass\n1048576 900.0 "
      "Fail\n",
      "t.txt", 4);
  CHECK(failed.what == "OSU MPI Allreduce Latency Test v7.2; 1 of 2 rows failed their validation");
}

TEST_CASE("OSU's tests of other patterns are refused", "[validate][links][errors]") {
  for (const std::string name : {"Alltoall Latency", "Bi-Directional Bandwidth"})
    CHECK_THROWS_WITH(
        read_benchmark("# OSU MPI " + name + " Test\n8 5.0\n16 6.0\n", "x.txt", 2),
        "x.txt:1:1: expected the output of osu_latency, osu_bw or osu_allreduce with its header");
  CHECK(read_benchmark("# OSU MPI-CUDA Latency Test\n8 5.0\n16 6.0\n", "x.txt", 2).times.size() == 2);
}
