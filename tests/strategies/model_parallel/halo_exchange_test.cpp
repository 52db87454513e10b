#include <catch2/catch.hpp>

#include "core/yaml.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "tests/strategies/collectives/play.hpp"

using namespace stepcast;

namespace {

Model strided_maps(int rows) {
  const YamlNode node = parse_yaml(
      "{name: m, source: s, input: [2, " + std::to_string(rows) +
          ", 12], layers: [{name: a, kind: convolution, filters: 3, kernel: 5, stride: 2, pad: 2, bias: "
          "false}, "
          "{name: b, kind: convolution, filters: 3, kernel: 3, pad: 1, bias: false}, {name: l, kind: "
          "mean_squared_error}]}",
      "m.yaml");
  return read_model(YamlValue(node, ""));
}

std::vector<std::vector<HaloMessage>> forward_messages(const Model& model, const Parts& parts,
                                                       std::size_t layer) {
  std::vector<std::vector<HaloMessage>> messages;
  for (int device = 0; device < device_count(parts); ++device)
    messages.push_back(device_halos(model, {parts, model.layers.size()}, device)[layer].forward);
  return messages;
}

}  // namespace

TEST_CASE("every device receives at least the elements of its halos, from its neighbours", "[strategies]") {
  for (const Parts& parts : {Parts{4, 1}, Parts{3, 1}, Parts{2, 2}, Parts{3, 3}}) {
    const Model model = strided_maps(46);
    for (const std::size_t layer : {0, 1}) {
      const auto messages = forward_messages(model, parts, layer);
      const HaloExchange halo = halo_exchange(parts, messages);
      REQUIRE(halo.schedule != nullptr);
      const std::int64_t elements = halo.elements;
      std::vector<double> received(messages.size());
      for (const Phase& phase : halo.schedule->phases) {
        for (const Edge& edge : *phase.edges) {
          received[edge.target] +=
              static_cast<double>(slice_of(*halo.schedule, phase, edge, 0, elements).size());
          const auto from = grid_place(parts, edge.source), to = grid_place(parts, edge.target);
          int distance = 0;
          for (std::size_t i = 0; i < parts.size(); ++i) distance += std::abs(from[i] - to[i]);
          CHECK(distance == 1);
        }
      }
      for (std::size_t device = 0; device < messages.size(); ++device)
        CHECK(received[device] >= elements_of(messages[device]));
    }
  }
}

TEST_CASE("even strips receive exactly their halos", "[strategies]") {
  const Parts parts{4, 1};
  const auto messages = forward_messages(strided_maps(64), parts, 1);
  const HaloExchange halo = halo_exchange(parts, messages);
  double elements = 0;
  for (const auto& received : messages) elements += elements_of(received);
  CHECK(halo.elements == elements);
}

TEST_CASE("messages of an exchange lie apart, so that playing it moves each once", "[strategies]") {
  const Parts parts{4, 1};
  const HaloExchange halo = halo_exchange(parts, forward_messages(strided_maps(64), parts, 1));
  Buffers buffers = numbered(4, halo.elements);
  const Buffers before = buffers;
  play(*halo.schedule, buffers);
  double changed = 0;
  for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
    for (std::size_t i = 0; i < buffers[rank].size(); ++i)
      changed += buffers[rank][i] != before[rank][i] ? 1 : 0;
  }
  CHECK(changed == halo.elements);
}

TEST_CASE("a layer without halos has no exchange", "[strategies]") {
  CHECK(halo_exchange({2, 1}, {{}, {}}).schedule == nullptr);
}
