#include <catch2/catch.hpp>

#include "guarded_backend.hpp"
#include "hand_worker.hpp"
#include "kernels/timing/host_info.hpp"
#include "runtime/memory/parameters.hpp"

namespace stepcast::device_memory_test {

TEST_CASE("ranks with arrays in device memory train to the same bits", "[validate][device]") {
  struct Case {
    const char* strategy;
    int workers, servers;
  };
  const auto c = GENERATE(values<Case>({
      {"{kind: synchronous, all_reduce: ring, bucket: tensor}", 1, 0},
      {"{kind: synchronous, all_reduce: ring, bucket: tensor}", 2, 0},
      {"{kind: synchronous, all_reduce: double_tree, overlap: false}", 3, 0},
      {"{kind: synchronous, all_reduce: ring, bucket: 100 B, accumulation: 2}", 2, 0},
      {"{kind: synchronous, all_reduce: ring, compression: fp16, bucket: tensor}", 2, 0},
      {"{kind: synchronous, all_reduce: ring, compression: one_bit, bucket: 200 B}", 3, 0},
      {"{kind: zero, stage: 1, bucket: 200 B}", 2, 0},
      {"{kind: zero, stage: 2, bucket: 200 B, accumulation: 2}", 2, 0},
      {"{kind: zero, stage: 2, bucket: 200 B}", 3, 0},
      {"{kind: zero, stage: 3, bucket: 200 B}", 2, 0},
      {"{kind: model_averaging, mini_batches: 3, aggregation: tree}", 3, 0},
      {"{kind: bmuf, mini_batches: 2, block_momentum: 0.9, aggregation: flat}", 2, 0},
      {"{kind: bmuf, mini_batches: 2, block_momentum: 0.9, aggregation: all_reduce}", 2, 0},
      {"{kind: bmuf, mini_batches: 2, workers_per_replica: 2, block_momentum: 0.5, all_reduce: ring}", 4, 0},
      {"{kind: diloco, mini_batches: 2, outer_momentum: 0.9, outer_learning_rate: 0.7}", 2, 0},
      {"{kind: parameter_server, server: own_device, mode: synchronous, shards: 2}", 2, 2},
      {"{kind: parameter_server, server: own_device, shards: 3}", 1, 3},
      {"{kind: parameter_server, server: own_device, master: serial}", 1, 1},
      {"{kind: parameter_server, server: own_device, compression: fp16, shards: 2}", 1, 2},
      {"{kind: elastic_averaging, server: own_device}", 1, 1},
  }));
  CAPTURE(c.strategy, c.workers);
  const int batch = std::string(c.strategy).find("accumulation") == std::string::npos ? 1 : 2;
  const Plan plan = plan_of(c.strategy, c.workers, c.servers, 4, batch * kBatch);
  const auto plain = trained(plan, kMomentum);
  CHECK(trained(plan, kMomentum, {.make = test::make_guarded_backend}) == plain);
  CHECK(plain[0] != trained(plan_of(c.strategy, c.workers, c.servers, 3, batch * kBatch), kMomentum)[0]);
}

TEST_CASE("mapped spans hold the device's values, and unmap stores them", "[validate][device]") {
  set_kernel_threads(1);
  const auto backend = test::make_guarded_backend();
  Network network(*backend, small_model(), {.batch = kBatch, .optimizer = kPlain});
  HostMirror mirror(network);
  const std::vector<float> before = parameters_of(network);
  const std::span<float> all = mirror.parameters();
  const auto device = [&](std::size_t at) {
    float value = 0;
    mirror.device().to_host(mirror.device().record_event(), network.all_parameters().value + at, &value, 1);
    return value;
  };
  const float third = device(3), sixth = device(6), tenth = device(10);

  const std::span<float> first = all.subspan(2, 3);
  mirror.map_to_host(first);
  CHECK(first[1] == third);
  first[1] = 7;
  const std::span<float> second = all.subspan(9, 2);
  all[6] = -1;                 // has just been received: newer than the device's value
  mirror.map_to_host(second);  // does not map the elements in between
  CHECK(all[6] == -1);
  CHECK(first[1] == 7);
  CHECK(second[1] == tenth);
  second[1] = 8;
  CHECK(device(3) == third);
  mirror.unmap();
  CHECK(device(3) == 7);
  CHECK(device(10) == 8);
  CHECK(device(6) == sixth);
  CHECK(parameters_of(network) != before);

  mirror.map_to_host(all.subspan(0, 1));
  mirror.map_to_host(all.subspan(3, 1));
  CHECK(all[3] == 7);
}

TEST_CASE("parts that overlap or touch are mapped once", "[validate][device]") {
  set_kernel_threads(1);
  const auto backend = test::make_guarded_backend();
  Network network(*backend, small_model(), {.batch = kBatch, .optimizer = kPlain});
  HostMirror mirror(network);
  const std::span<float> all = mirror.parameters();
  const auto device = [&](std::size_t at) {
    float value = 0;
    mirror.device().to_host(mirror.device().record_event(), network.all_parameters().value + at, &value, 1);
    return value;
  };
  std::vector<float> before;
  for (std::size_t i = 0; i < 40; ++i) before.push_back(device(i));
  const auto map_to_host = [&](std::size_t begin, std::size_t end, float value) {
    mirror.map_to_host(all.subspan(begin, end - begin));
    for (std::size_t i = begin; i < end; ++i) {
      if (all[i] == before[i]) all[i] = value;  // otherwise an earlier call changed it
    }
  };
  map_to_host(10, 14, 1);
  map_to_host(20, 24, 2);
  map_to_host(14, 16, 3);  // touches the first
  map_to_host(12, 22, 4);  // covers both and the elements in between
  map_to_host(8, 30, 5);   // covers all
  map_to_host(11, 12, 6);  // inside
  const std::vector<std::pair<std::size_t, float>> expected{{8, 5},  {9, 5},  {10, 1}, {13, 1},
                                                            {14, 3}, {15, 3}, {16, 4}, {19, 4},
                                                            {20, 2}, {23, 2}, {24, 5}, {29, 5}};
  for (const auto& [at, value] : expected) CHECK(all[at] == value);
  mirror.unmap();
  for (const auto& [at, value] : expected) CHECK(device(at) == value);
  CHECK(device(7) == before[7]);
  CHECK(device(30) == before[30]);
}

TEST_CASE("only spans of the mirror have a device address, and others are copied to the device",
          "[validate][device]") {
  set_kernel_threads(1);
  const auto backend = test::make_guarded_backend();
  Network network(*backend, small_model(), {.batch = kBatch});
  HostMirror mirror(network);
  const ParameterView& there = network.all_parameters();
  CHECK(mirror.on_device(mirror.gradients().subspan(5, 4)) == there.gradient + 5);
  std::vector<float> own(4, 2.0F);
  CHECK(mirror.on_device(own) == nullptr);
  const float* copied = mirror.uploaded(own);
  REQUIRE(copied != nullptr);
  float back = 0;
  mirror.device().to_host(mirror.device().record_event(), copied + 3, &back, 1);
  CHECK(back == 2);
}

}  // namespace stepcast::device_memory_test
