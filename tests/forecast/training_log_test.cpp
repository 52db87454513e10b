#include "forecast/measured/training_log.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "forecast/measured/measurements.hpp"
#include "tests/report/temporary_folder.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

/// The rows of a log with this text.
std::vector<Row> rows_of(const std::string& text, const std::string& workers = "") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "run.log";
  std::ofstream(file) << text;
  return read_runs({workers, file.string()}).rows;
}

void check_log(const std::string& text, const std::string& workers, const char* column, double value) {
  const auto rows = rows_of(text, workers);
  CAPTURE(text);
  REQUIRE(rows.size() == 1);  // the first step is left out
  CHECK(rows[0].number("workers") == 8);
  CHECK(rows[0].number(column) == Approx(value));
}

}  // namespace

TEST_CASE("the logs of trainers give the time of a step or a rate, without their first step", "[forecast]") {
  check_log(
      "using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1\n"
      " iteration        1/     100 | consumed samples:           64 | elapsed time per iteration (ms): "
      "9120.3 | lr: 1 |\n"
      " iteration        2/     100 | consumed samples:          128 | elapsed time per iteration (ms): "
      "2688.1/2700 |\n",
      "", "step_seconds", 2.6881);
  check_log(
      "[rank0]:[titan] 2025-05-18 16:04:46,338 - root - INFO - step:  1  loss:  3.2  memory:  9.4GiB(64%)  "
      "tps: 1,282  mfu: 1%\n"
      "[rank0]:[titan] 2025-05-18 16:04:47,456 - root - INFO - step:  2  loss:  3.1  memory:  9.4GiB(64%)  "
      "tps: 7,334  mfu: 9%\n",
      "8", "tokens_per_second_per_device", 7334);
  check_log(
      "[timer.py:260:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=25.0, "
      "CurrSamplesPerSec=25.7, MemAllocated=4GB\n"
      "[timer.py:260:stop] epoch=0/micro_step=20/global_step=20, RunningAvgSamplesPerSec=25.1, "
      "CurrSamplesPerSec=26.5, MemAllocated=4GB\n",
      "8", "samples_per_second", 26.5);
  check_log(
      "Epoch: [0][  0/20019]\tTime  8.315 ( 8.315)\tData  2.002 ( 2.002)\tLoss 7.0827e+00 (7.0827e+00)\n"
      "Epoch: [0][ 10/20019]\tTime  2.715 ( 3.210)\tData  0.002 ( 0.184)\tLoss 6.9802e+00 (7.0127e+00)\n",
      "8", "step_seconds", 2.715);
  check_log(
      "Epoch 0:   1%|          | 10/100 [00:05<00:45,  1.00it/s, v_num=0]\rEpoch 0: 20%|##| 20/100 "
      "[00:05<00:45,  2.00it/s, v_num=0]",
      "8", "step_seconds", 0.5);
  check_log(
      "Epoch 0:   1%|   | 1/9 [00:05<00:45,  9.00s/it]\rEpoch 0: 20%|##| 2/9 [00:05<00:45,  4.50s/it, "
      "v_num=0]",
      "8", "step_seconds", 4.5);
  check_log("Number of GPUs: 8\nIter #0: 2.9 img/sec per GPU\nIter #1: 3.0 img/sec per GPU\n", "",
            "samples_per_second", 24);
}

TEST_CASE("a log that does not say its workers needs their number", "[errors]") {
  CHECK_THROWS_WITH(
      rows_of("Epoch: [0][  0/9]\tTime  8.3 ( 8.3)\n"),
      Catch::Matchers::Contains("run.log: the log does not say of how many workers it is; write their "
                                "number before it, such as 8="));
  CHECK(parse_run_file("8=a.log").workers == "8");
  CHECK(parse_run_file("8=a.log").file == "a.log");
  CHECK(parse_run_file("a=b.csv").file == "a=b.csv");
}

TEST_CASE("a tenth of a long log is left out, and its median is one measurement with its spread",
          "[forecast]") {
  std::string text;
  for (int step = 0; step < 40; ++step)
    text += "Epoch: [0][  0/9]\tTime  " + std::string(step < 4 ? "9.9" : (step % 2 == 0 ? "1.0" : "1.2")) +
            " ( 1.0)\n";
  const auto rows = rows_of(text, "4");
  REQUIRE(rows.size() == 36);

  const TemporaryFolder folder;
  const auto file = folder.path() / "run.log";
  std::ofstream(file) << text;
  const auto measured = measurements_of(
      {file.string(), read_runs({"4", file.string()})},
      scenario_of(
          "name: l\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\nstrategy: {kind: "
          "synchronous}\nsweep: {workers: [1, 4]}\n"));
  REQUIRE(measured.size() == 1);
  CHECK(measured[0].column == "step_seconds");
  CHECK(point_name(measured[0].point) == "workers=4");
  CHECK(measured[0].value == Approx(1.1));
  CHECK(measured[0].spread == Approx(1.2533 * 0.1 * std::sqrt(36.0 / 35) / 6 / 1.1));
}
