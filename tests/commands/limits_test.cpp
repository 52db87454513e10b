#include "commands/limits.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "commands/time_limit.hpp"
#include "core/error.hpp"
#include "scenarios/scenario.hpp"
#include "tests/sim/small_cluster.hpp"

using namespace stepcast;

namespace {

RunOptions shard(const std::string& text) {
  RunOptions options;
  options.shard_text = text;
  read_shard(options);
  return options;
}

RunSize size_of(double bytes) {
  RunSize size;
  size.process_memory = {bytes};
  return size;
}

}  // namespace

TEST_CASE("a shard is i/N with 0 <= i < N", "[commands]") {
  CHECK(shard("").shards == 1);
  CHECK(shard("2/5").shard == 2);
  CHECK(shard("2/5").shards == 5);
  for (const char* text : {"1", "5/5", "-1/5", "1/0", "a/b", "1/", "/3", "1/2/3", "0/1000001", "1 / 2"}) {
    CHECK_THROWS_AS(shard(text), InputError);
    CHECK_THROWS_WITH(shard(text),
                      std::string("--shard: expected i/N with 0 <= i < N, got \"") + text + "\"");
  }
}

TEST_CASE("processes that need more memory together than the limit are refused", "[commands]") {
  RunOptions options;
  options.processes = 4;
  options.memory_limit = "400 MiB";
  CHECK_NOTHROW(check_limits(size_of(100 * 1048576.0), options));
  CHECK_THROWS_AS(check_limits(size_of(101 * 1048576.0), options), LimitError);
  CHECK_THROWS_WITH(check_limits(size_of(150 * 1048576.0), options),
                    "4 processes of about 150 MiB need 600 MiB, over the limit of 400 MiB: use -j 2 or raise "
                    "--memory-limit");
  for (const char* text : {"400", "-1 MiB", "0 B", "4 MHz", "much"}) {
    options.memory_limit = text;
    CHECK_THROWS_WITH(check_limits(size_of(1), options),
                      std::string("--memory-limit: expected a size such as \"8 GiB\", got \"") + text + "\"");
  }
}

TEST_CASE("a run may take 80 % of the machine's memory where nothing else is said", "[commands]") {
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  RunOptions options;
  options.processes = 1;
  CHECK_NOTHROW(check_limits(size_of(0.79 * memory), options));
  CHECK_THROWS_AS(check_limits(size_of(0.81 * memory), options), LimitError);
}

TEST_CASE("a form that plays every message is refused where it would take hours", "[commands]") {
  const auto step_of = [](int workers, const char* form) {
    const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/bench/cases/s.yaml";
    const Scenario scenario = read_scenario(file, {});
    Library library;
    return build_experiment(scenario.document,
                            {parse_assignment("workers=" + std::to_string(workers)),
                             parse_assignment("simulation.form=" + std::string(form))},
                            library);
  };
  RunOptions options;
  CHECK(detailed(step_of(16, "automatic")).messages == 0);
  const Experiment small = step_of(16, "message");
  const auto buckets = static_cast<double>(small.plan.collectives.size());
  CHECK(detailed(small).messages == buckets * 2 * 16 * 15);  // a ring's
  CHECK_NOTHROW(check_time(small, options));
  CHECK_NOTHROW(check_time(step_of(16384, "automatic"), options));
  const Experiment large = step_of(16384, "message");
  CHECK_THROWS_AS(check_time(large, options), LimitError);
  CHECK_NOTHROW(check_time(step_of(1024, "fluid"), options));
  options.time_limit = "10 min";
  CHECK_THROWS_AS(check_time(step_of(131072, "fluid"), options), LimitError);
  options.time_limit = "100000 h";
  CHECK_NOTHROW(check_time(large, options));
  for (const char* text : {"1", "-1 h", "0 s", "4 MB", "long"}) {
    options.time_limit = text;
    CHECK_THROWS_WITH(check_time(small, options),
                      std::string("--time-limit: expected a time such as \"2 h\", got \"") + text + "\"");
  }
}

TEST_CASE("a run has its points in every simulation that is asked for", "[commands]") {
  Experiment experiment;
  experiment.plan.workers = 7;
  const RunSize size = estimated(experiment, 10, 67);
  CHECK(size.simulations == 10 * 67);
  CHECK(size.points == 10);
  CHECK(size.workers == 7);
  Experiment larger = experiment;
  larger.bandwidths = LinkBandwidths(switch_platform(100));
  CHECK(estimated(larger, 10, 64).process_memory > size.process_memory);
  const Bytes coupled = estimated(larger, 10, 64).process_memory;
  larger.form = Form::message;
  CHECK(estimated(larger, 10, 64).process_memory > coupled);
}
