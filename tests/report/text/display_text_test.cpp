#include "report/text/display_text.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "core/cli/command_line.hpp"
#include "report/results/results_table.hpp"
#include "report/text/narrow_tables.hpp"
#include "report/text/progress.hpp"

using namespace stepcast;

TEST_CASE("a table aligns its columns, wraps its header and ends no line in spaces", "[report]") {
  Table table;
  table.columns = {{"name", "", Align::left, 8}, {"exposed communication", "ms"}, {"fits", "", Align::left}};
  table.rows = {{"a", "1.5", "yes"}, {"h\xc3\xa9llo, wide world", "120.0", "no"}, {"esc\x1b[2J", "3"}};
  CHECK(to_string(table) ==
        "                exposed\n"
        "name      communication  fits\n"
        "                     ms\n"
        "-----------------------------\n"
        "a                   1.5  yes\n"
        "h\xc3\xa9l...ld          120.0  no\n"
        "esc?[2J               3\n");
}

TEST_CASE("the results table names one unit a column and shows intervals", "[report]") {
  Row one;
  one.set("point", "workers=8");
  one.set("workers", 8);
  one.set("step_seconds", 0.2318);
  one.set("samples_per_second", 1104.4);
  one.set("efficiency", 1.0);
  one.set("memory_bytes", 11.25e9);
  one.set("fits", true);
  one.set("bottleneck", "compute");
  Row two = one;
  two.set("point", "workers=256");
  two.set("workers", 256);
  two.set("step_seconds", 0.2513);
  two.set("step_seconds_low", 0.2431);
  two.set("step_seconds_high", 0.262);
  two.set("samples_per_second", 32599.0);
  two.set("efficiency", 0.9224);
  two.set("fits", false);
  CHECK(to_string(results_table({"goyal", {one, two}}, {})) ==
        "workers                    step  throughput  efficiency  memory  fits  bottleneck\n"
        "                             ms   samples/s           %      GB\n"
        "---------------------------------------------------------------------------------\n"
        "      8                   231.8        1104       100.0   11.25   yes  compute\n"
        "    256  251.3 [243.1 .. 262.0]       32599        92.2   11.25    no  compute\n");
}

TEST_CASE("the parts in the results table add up to the step, and a note says what the interval covers",
          "[report]") {
  Row row;
  row.set("workers", 8);
  row.set("step_seconds", 0.110);
  row.set("compute_seconds", 0.090);
  row.set("exposed_communication_seconds", 0.006);
  row.set("host_seconds", 0.0);
  row.set("waiting_seconds", 0.004);
  CHECK(interval_note({"s", {row}}, true).empty());
  row.set("step_seconds_low", 0.1);
  row.set("step_seconds_high", 0.12);
  CHECK(interval_note({"s", {row}}, false).ends_with("the model's own error is not in it"));
  row.set("unmodelled_seconds", 0.010);
  const Table table = results_table({"s", {row}}, {});
  std::vector<std::string> headers;
  for (const TableColumn& column : table.columns) headers.push_back(column.header);
  CHECK(headers == std::vector<std::string>{"workers", "step", "compute", "exposed communication",
                                            "wait for slowest", "not modelled"});
  CHECK_THAT(interval_note({"s", {row}}, true), Catch::Matchers::Contains("90 % of measured steps"));
}

TEST_CASE("long names of points keep what differs, and equal keys are left out", "[report]") {
  const std::string begin = "platforms/a-long-folder/of-clusters/", end = ".yaml";
  CHECK(told_apart({begin + "one" + end, begin + "two" + end}, 26) ==
        std::vector<std::string>{"...one.yaml", "...two.yaml"});
  CHECK(told_apart({"stages=4, tensor=2, zero=1", "stages=8, tensor=2, zero=1"}, 20) ==
        std::vector<std::string>{"stages=4...", "stages=8..."});
  CHECK(told_apart({"short", "texts"}, 26) == std::vector<std::string>{"short", "texts"});
  Row one, two;
  one.set("platform", "lassen");
  one.set("bucket", "1 MiB");
  two.set("platform", "lassen");
  two.set("bucket", "25 MiB");
  const Table table = results_table({"s", {one, two}}, {"platform", "bucket"});
  REQUIRE(table.columns.size() == 1);
  CHECK(table.columns.front().header == "bucket");
}

TEST_CASE("the second table has what only some strategies have, and is none without", "[report]") {
  Row row;
  row.set("workers", 8);
  row.set("step_seconds", 0.02);
  row.set("knee_workers", 14.97);
  row.set("server_utilization", 0.5);
  row.set("lost_to_restart_seconds", 5400.0);
  row.set("lost_to_rework_seconds", 0.0);
  Row other;
  other.set("workers", 64);
  other.set("step_seconds", 0.03);
  other.set("sweep_minutes", 44.2);
  other.set("master_seconds", 0.001);
  CHECK(to_string(own_columns_table({"s", {row, other}}, {})) ==
        "         master\n"
        "             an     knee  server         lost to\n"
        "workers  update  workers    busy  sweep  restart\n"
        "             ms                %    min        h\n"
        "------------------------------------------------\n"
        "      8            14.97    50.0           1.500\n"
        "     64    1.00                   44.20\n");
  Row plain;
  plain.set("workers", 8);
  plain.set("data_loading_seconds", 0.0);
  CHECK(own_columns_table({"s", {plain}}, {}).columns.empty());
}

TEST_CASE("swept keys of equal last words are distinguished by the words before", "[report]") {
  Row row;
  row.set("platform.node.device_link.bandwidth", std::string("1 GB/s"));
  row.set("platform.network.bandwidth", std::string("2 GB/s"));
  row.set("strategy.all_reduce", std::string("ring"));
  const Table table = results_table({"s", {row}}, {"platform.node.device_link.bandwidth",
                                                   "platform.network.bandwidth", "strategy.all_reduce"});
  REQUIRE(table.columns.size() == 3);
  CHECK(table.columns[0].header == "device link bandwidth");
  CHECK(table.columns[1].header == "network bandwidth");
  CHECK(table.columns[2].header == "all reduce");
}

TEST_CASE("quantities are printed with three digits and a prefix", "[report]") {
  CHECK(human(12345, "B/s") == "12.3 kB/s");
  CHECK(human(999.6, "") == "1.00 k");
  CHECK(human(0, "B") == "0 B");
  CHECK(human(Seconds{0.2318}) == "232 ms");
  CHECK(human(Seconds{1.5e-6}) == "1.50 us");
  CHECK(human(Seconds{90}) == "90.0 s");
  CHECK(human(Seconds{3000}) == "50.0 min");
  CHECK(human(Seconds{36000}) == "10.0 h");
  CHECK(human(Seconds{864000}) == "10.0 d");
  CHECK(human(Bytes{17179869184}) == "16.0 GiB");
  CHECK(fixed(-0.001, 1) == "0.0");
}

TEST_CASE("the default columns with an interval fit 140 letters", "[report]") {
  Row row;
  row.set("point", "halving-doubling, workers=16384");
  row.set("workers", 16384);
  for (const char* column : {"step_seconds", "step_seconds_low", "step_seconds_high", "compute_seconds"})
    row.set(column, 0.9);
  row.set("exposed_communication_seconds", 0.45);
  row.set("samples_per_second", 1234567.0);
  row.set("samples_per_second_low", 1.0);
  row.set("samples_per_second_high", 2.0);
  row.set("speedup", 15000.0);
  row.set("efficiency", 0.95);
  row.set("memory_bytes", 8.0e10);
  row.set("fits", true);
  row.set("bottleneck", "network");
  const auto text = to_string(results_table({"s", {row}}));
  const auto last = text.rfind('\n', text.size() - 2) + 1;
  CHECK(text.size() - last <= 141);
}

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

TEST_CASE("progress says how much is done and how long the rest takes", "[report]") {
  CHECK(progress_text(0, 4, Seconds{2}, "points") == "0 of 4 points, 2.00 s");
  CHECK(progress_text(1, 4, Seconds{10}, "simulations") == "1 of 4 simulations, 10.0 s, 30.0 s left");
  CHECK(progress_text(4, 4, Seconds{10}, "points") == "4 of 4 points, 10.0 s");
}

TEST_CASE("a short run shows no progress", "[report]") {
  std::ostringstream out;
  const auto style = GENERATE(ProgressStyle::line, ProgressStyle::plain);
  Progress progress(out, style);
  progress.update(progress_text(1, 4, Seconds{0.5}, "points"), Seconds{0.5});
  progress.update(progress_text(2, 4, Seconds{0.99}, "points"), Seconds{0.99});
  progress.clear();
  CHECK(out.str().empty());
}

TEST_CASE("a terminal's line is rewritten every 0.2 s at most and wiped at the end", "[report]") {
  std::ostringstream out;
  Progress progress(out, ProgressStyle::line);
  progress.update(progress_text(1, 4, Seconds{1}, "points"), Seconds{1});
  progress.update(progress_text(2, 4, Seconds{1.1}, "points"), Seconds{1.1});
  progress.update(progress_text(4, 4, Seconds{1.2}, "points"), Seconds{1.2});
  progress.clear();
  const std::string first = "1 of 4 points, 1.00 s, 3.00 s left";
  const std::string second = "4 of 4 points, 1.20 s";
  const std::string blank(first.size(), ' ');
  CHECK(out.str() == "\r" + first + "\r" + second + blank.substr(second.size()) + "\r" + blank + "\r");
}

TEST_CASE("a log gets a line every 10 s", "[report]") {
  std::ostringstream out;
  Progress progress(out, ProgressStyle::plain);
  progress.update(progress_text(1, 4, Seconds{5}, "points"), Seconds{5});
  progress.update(progress_text(1, 4, Seconds{10}, "points"), Seconds{10});
  progress.update(progress_text(2, 4, Seconds{19}, "points"), Seconds{19});
  progress.update(progress_text(3, 4, Seconds{21}, "points"), Seconds{21});
  progress.clear();
  CHECK(out.str() == "1 of 4 points, 10.0 s, 30.0 s left\n3 of 4 points, 21.0 s, 7.00 s left\n");
}

TEST_CASE("progress that ends early, as by an error, leaves no line on the terminal", "[report]") {
  std::ostringstream out;
  { Progress(out, ProgressStyle::line).update("half", Seconds{1}); }
  CHECK(out.str() == "\rhalf\r    \r");
}

TEST_CASE("a command with -q shows no progress", "[report]") {
  std::ostringstream out;
  {
    const CommandOutput quiet({.quiet = true});
    Progress progress(out, progress_style());
    progress.update("half", Seconds{20});
  }
  CHECK(out.str().empty());
  CHECK(progress_style() != ProgressStyle::none);
}
