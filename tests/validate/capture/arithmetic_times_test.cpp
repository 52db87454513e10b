#include "validate/capture/arithmetic_times.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "kernels/network/backend.hpp"
#include "kernels/onednn/backend.hpp"
#include "ranks.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/registry.hpp"
#include "validate/capture/message_times.hpp"

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

namespace {

Model three_layers() {
  Model model;
  model.input = {8};
  for (const std::int64_t width : {8, 4, 4}) {
    Layer layer;
    layer.kind = LayerKind::relu;
    layer.inputs = {static_cast<int>(model.layers.size()) - 1};
    layer.input = model.layers.empty() ? model.input : model.layers.back().output;
    layer.output = {width};
    model.layers.push_back(layer);
  }
  return model;
}

}  // namespace

TEST_CASE("pipeline messages cost the layers on both sides of a stage boundary, forward and backward",
          "[validate]") {
  Trace trace;
  trace.layers.resize(3);
  for (LayerTrace& layer : trace.layers) {
    layer.forward = {{1, 2}, {1, 2}};
    layer.backward_weights = {{3, 4}, {3, 4}};
  }
  trace.layers[1].backward_data = {{5, 6}, {5, 6}};
  ModelPartition partition;
  partition.stages = {{0, 2}, {2, 3}};
  partition.micro_batch = 10;
  const Trace with = with_messages(trace, three_layers(), partition, [](Bytes size) {
    CHECK(size.value == 10 * 4 * sizeof(float));
    return Seconds{0.5};
  });
  CHECK(with.layers[0].forward.seconds == std::vector<double>{1, 2});
  CHECK(with.layers[1].forward.seconds == std::vector<double>{1.5, 2.5});
  CHECK(with.layers[2].forward.seconds == std::vector<double>{1.5, 2.5});
  CHECK(with.layers[1].backward_data.seconds == std::vector<double>{5.5, 6.5});
  CHECK(with.layers[1].backward_weights.seconds == std::vector<double>{3, 4});
  CHECK(with.layers[2].backward_weights.cpu_seconds == std::vector<double>{3.5, 4.5});
}

TEST_CASE("the cost at a layer without passes is added to the layers around it", "[validate]") {
  Trace trace;
  trace.layers.resize(3);
  trace.layers[0].backward_data = {{1}, {1}};
  trace.layers[2].forward = {{2}, {2}};
  add_host_time(trace, 1, {0.5}, {0.25});
  CHECK(trace.layers[2].forward.seconds == std::vector<double>{2.5});
  CHECK(trace.layers[0].backward_data.seconds == std::vector<double>{1.25});
}

TEST_CASE("the CPU time of a message is interpolated between measured sizes", "[validate]") {
  LinkMeasurements links;
  CHECK(message_host_time(links, {1000}).value == 0);
  for (const double bytes : {1000.0, 3000.0}) {
    LinkMeasurement& one = links.emplace_back(LinkMeasurement{LinkMeasurement::What::message_host});
    one.bytes = bytes;
    one.seconds = bytes == 1000 ? 0.2 : 1.0;
  }
  CHECK(message_host_time(links, {1000}).value == Approx(0.1));
  CHECK(message_host_time(links, {2000}).value == Approx(0.3));
  CHECK(message_host_time(links, {500}).value == Approx(0.05));
  CHECK(message_host_time(links, {6000}).value == Approx(1.0));
}
}  // namespace stepcast
