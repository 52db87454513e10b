#include "forecast/resource_limits.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "scenarios/reader/scenario.hpp"
#include "tests/sim/small_cluster.hpp"

using namespace stepcast;

namespace {

RunSize size_of(double bytes) {
  RunSize size;
  size.process_memory = {bytes};
  return size;
}

}  // namespace

TEST_CASE("processes that need more memory together than the limit are refused", "[commands]") {
  RunLimits options;
  options.processes = 4;
  options.memory_limit = "400 MiB";
  CHECK_NOTHROW(check_limits(size_of(100 * 1048576.0), options));
  CHECK_THROWS_AS(check_limits(size_of(101 * 1048576.0), options), LimitError);
  CHECK_THROWS_WITH(check_limits(size_of(150 * 1048576.0), options),
                    "4 processes of about 150 MiB need 600 MiB, over the limit of 400 MiB: use -j 2 or raise "
                    "--memory-limit");
  CHECK_THROWS_WITH(
      check_limits(size_of(500 * 1048576.0), options),
      "4 processes of about 500 MiB need 1.95 GiB, over the limit of 400 MiB: raise --memory-limit or "
      "simulate fewer workers");
  for (const char* text : {"400", "-1 MiB", "0 B", "4 MHz", "much"}) {
    options.memory_limit = text;
    CHECK_THROWS_WITH(check_limits(size_of(1), options),
                      std::string("--memory-limit: expected a size such as \"8 GiB\", got \"") + text + "\"");
  }
}

TEST_CASE("without a limit a run may use 80 % of the machine's memory", "[commands]") {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  RunLimits options;
  options.processes = 1;
  CHECK_NOTHROW(check_limits(size_of(0.79 * memory), options));
  CHECK_THROWS_AS(check_limits(size_of(0.81 * memory), options), LimitError);
}

namespace {

/// A case of bench/ with one value of the sweep.
Experiment benchmark(const std::string& name, int workers, const std::vector<std::string>& settings) {
  const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/bench/cases.yaml#bench-" + name;
  const Scenario scenario = read_scenario(file, {});
  std::vector<Assignment> values{parse_assignment("workers=" + std::to_string(workers))};
  for (const std::string& setting : settings) values.push_back(parse_assignment(setting));
  Library library;
  return build_experiment(scenario.document, values, library);
}

RunSize four_simulations() {
  RunSize size;
  size.points = 1;
  size.simulations = 4;
  return size;
}

void check_refused(const Experiment& experiment, bool refused) {
  RunLimits options;
  options.processes = 2;
  CAPTURE(simulation_cost(experiment).messages, simulation_cost(experiment).time.value);
  if (refused) {
    CHECK_THROWS_AS(check_time(experiment, four_simulations(), options), LimitError);
  } else {
    CHECK_NOTHROW(check_time(experiment, four_simulations(), options));
  }
}

}  // namespace

TEST_CASE("with every fidelity, a run that would take hours is refused", "[commands]") {
  const auto steps = [](const char* workers) { return std::string("simulation.steps=") + workers; };
  check_refused(benchmark("s", 131072, {}), false);
  check_refused(benchmark("s", 131072, {"simulation.fidelity=coupled"}), false);
  check_refused(benchmark("s", 131072, {"simulation.fidelity=fluid"}), true);
  check_refused(benchmark("s", 16384, {"simulation.fidelity=message"}), true);
  check_refused(benchmark("s", 1024, {"simulation.fidelity=fluid"}), false);
  check_refused(benchmark("s", 64, {"simulation.fidelity=message"}), false);
  check_refused(benchmark("p", 4096, {}), false);
  check_refused(benchmark("p", 1024, {steps("1000")}), false);
  check_refused(benchmark("p", 1024, {steps("100000")}), true);  // 3.3 thousand million messages
  check_refused(benchmark("p", 4096, {"simulation.fidelity=message"}), true);
  check_refused(benchmark("p", 64, {"simulation.fidelity=message"}), false);
}

TEST_CASE("a run that is refused for its time says how long, and what to do", "[commands]") {
  RunLimits options;
  options.processes = 2;
  CHECK_THROWS_WITH(
      check_time(benchmark("s", 131072, {"simulation.fidelity=fluid"}), four_simulations(), options),
      "the largest point (131072 workers) needs 4 simulations of 2.36e+06 messages or flows each with "
      "simulation.fidelity: fluid, about 1.7 h with 2 processes, over the limit of 1 h: use fidelity: "
      "automatic, "
      "fewer "
      "workers or steps, or raise --time-limit");
  const Experiment small = benchmark("s", 16, {"simulation.fidelity=message"});
  const double buckets = small.plan.collectives.size();
  CHECK(simulation_cost(small).messages == buckets * 2 * 16 * 15);  // a ring's
  const Experiment large = benchmark("s", 16384, {"simulation.fidelity=message"});
  options.time_limit = "1000000 h";
  CHECK_NOTHROW(check_time(large, four_simulations(), options));
  options.processes = 4;
  const Seconds one = simulation_cost(large).time;
  options.time_limit = fmt::format("{} s", 1.01 * one.value);
  CHECK_NOTHROW(check_time(large, four_simulations(), options));  // all four at once
  options.time_limit = fmt::format("{} s", 0.99 * one.value);
  CHECK_THROWS_AS(check_time(large, four_simulations(), options), LimitError);
  for (const char* text : {"1", "-1 h", "0 s", "4 MB", "long"}) {
    options.time_limit = text;
    CHECK_THROWS_WITH(check_time(small, four_simulations(), options),
                      std::string("--time-limit: expected a time such as \"2 h\", got \"") + text + "\"");
  }
}

TEST_CASE("a run has its points in every simulation that is asked for", "[commands]") {
  Experiment experiment;
  experiment.plan.workers = 7;
  const RunSize size = run_size(experiment, 10, 67);
  CHECK(size.simulations == 10 * 67);
  CHECK(size.points == 10);
  CHECK(size.workers == 7);
  Experiment larger = experiment;
  larger.bandwidths = LinkBandwidths(switch_platform(100));
  CHECK(run_size(larger, 10, 64).process_memory > size.process_memory);
  const Bytes coupled = run_size(larger, 10, 64).process_memory;
  larger.fidelity = Fidelity::message;
  larger.link_sharing = LinkSharing::simgrid;
  CHECK(run_size(larger, 10, 64).process_memory > coupled);
}

TEST_CASE("the estimate before a run counts the messages that a run with servers keeps", "[commands]") {
  const RunSize few = run_size(benchmark("p", 1024, {"simulation.steps=20"}), 1, 1);
  const RunSize many = run_size(benchmark("p", 1024, {"simulation.steps=1000"}), 1, 1);
  const double updates = 1024 * 16 * 980.0;
  CHECK(many.process_memory.value - few.process_memory.value > 4 * 8 * updates);  // four numbers each
  RunLimits options;
  options.processes = 1;
  options.memory_limit = fmt::format("{} B", 1.01 * few.process_memory.value);
  CHECK_NOTHROW(check_limits(few, options));
  CHECK_THROWS_AS(check_limits(many, options), LimitError);
}

TEST_CASE("links that SimGrid need not know take little memory", "[commands]") {
  const Experiment shared = benchmark("p", 1024, {}),
                   exact =
                       benchmark("p", 1024, {"simulation.fidelity=message", "simulation.sharing=simgrid"});
  const double links = shared.bandwidths.size();
  CHECK(simulated_memory(exact).value - simulated_memory(shared).value > 1000 * links);
}
