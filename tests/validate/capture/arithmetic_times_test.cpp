#include "validate/capture/arithmetic_times.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "kernels/network/backend.hpp"
#include "kernels/onednn/backend.hpp"
#include "ranks.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// Names of the arithmetic that two ranks timed, with its seconds.
std::map<std::string, double> timed(const std::string& kind) {
  std::map<std::string, double> seconds;
  run_ranks("memory", 2, [&](Transport& transport, Transport&) {
    const auto backend = make_onednn_backend();
    Library library;
    const YamlNode name = command_line_name("tiny-cnn");
    Network network(*backend, library.model(YamlValue(name, "model")), {.batch = 2});
    const Slice whole{0, trainable_parameters(network.model())};
    std::set<std::string> told;
    const LinkMeasurements links =
        time_arithmetic(transport, network, "t", arithmetic_of(*find_strategy(kind), whole, transport), 4,
                        [&](const std::string& what) { told.insert(what); });
    if (!transport.is_rank_0()) return;
    for (const LinkMeasurement& one : links) {
      const auto time = arithmetic_time(links, "t", one.algorithm);
      seconds[one.algorithm] = time ? time->value : -1;
      CHECK(told.count(one.algorithm) == 1);
    }
    CHECK_FALSE(arithmetic_time(links, "another trace", kSumOfGradients));
  });
  return seconds;
}

std::set<std::string> names(const std::map<std::string, double>& timed) {
  std::set<std::string> all;
  for (const auto& [name, seconds] : timed) {
    CHECK(seconds > 0);
    all.insert(name);
  }
  return all;
}

}  // namespace

TEST_CASE("ranks time the arithmetic that the strategy executes on its arrays", "[validate][mpi]") {
  using Names = std::set<std::string>;
  CHECK(names(timed("synchronous")) == Names{"sum of gradients"});
  CHECK(names(timed("model_averaging")) == Names{"average", "sum of gradients"});
  CHECK(names(timed("bmuf")) == Names{"filter", "sum of gradients"});
  CHECK(names(timed("diloco")) == Names{"filter", "sum of gradients"});
  CHECK(names(timed("elastic_averaging")) == Names{"center move", "elastic pull", "sum of gradients"});
  CHECK(names(timed("gradient_energy_matching")) ==
        Names{"center sum", "energy matching", "sum of gradients"});
  CHECK(names(timed("parameter_server")) == Names{"server update", "sum of gradients"});
}

}  // namespace stepcast
