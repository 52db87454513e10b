#include <catch2/catch.hpp>

#include "validate/capture/message_times.hpp"

namespace stepcast {
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
