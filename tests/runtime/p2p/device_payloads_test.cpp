#include "runtime/p2p/device_payloads.hpp"

#include <catch2/catch.hpp>

#include "fake_channels.hpp"
#include "guarded_backend.hpp"
#include "hand_worker.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast::device_payloads_test {
namespace {

/// One rank's payloads, in memory that the host cannot access.
struct Side {
  std::unique_ptr<Backend> backend = test::make_guarded_backend();
  DeviceMemory& memory = *backend->device_memory();
  CompletionQueue completions;
  DevicePayloads payloads;

  Side(test::FakeChannels& channels, int rank)
      : payloads(memory, RankId(rank), 2, channels.of(RankId(rank), memory)) {
    payloads.begin_run(completions);
  }

  PayloadId send(int to, const std::vector<float>& values, const Pending& operation) {
    const DevicePayloads::PayloadBuffer buffer = payloads.acquire(values.size());
    memory.to_device(values.data(), buffer.memory.get(), values.size());
    return payloads.send(RankId(to), buffer, values.size(), operation);
  }
  /// Takes a payload as a program does after it has received the message.
  std::vector<float> received(const PayloadId& payload) {
    const auto operation = std::make_shared<Operation>();
    operation->message.payload = payload;
    if (payloads.defer_until_arrival(operation)) {
      while (completions.next() != operation) {
      }
      REQUIRE_FALSE(payloads.defer_until_arrival(operation));
    }
    if (operation->error) std::rethrow_exception(operation->error);
    DevicePayloads::PayloadBuffer buffer = payloads.take_arrived(payload);
    std::vector<float> values(payload.floats);
    memory.to_host(memory.record_event(), buffer.memory.get(), values.data(), values.size());
    last_memory = buffer.memory.get();
    payloads.release(std::move(buffer));
    return values;
  }
  const float* last_memory = nullptr;
};

std::vector<std::pair<int, int>> pairs_of(const Plan& plan) {
  std::vector<std::pair<int, int>> pairs;
  for (const auto& [from, to] : message_pairs(plan)) pairs.emplace_back(from.value, to.value);
  return pairs;
}

}  // namespace

TEST_CASE("payloads of a pair arrive in order and are taken in any order", "[validate][payloads]") {
  test::FakeChannels channels;
  Side sender(channels, 0), receiver(channels, 1);
  std::vector<Pending> sent;
  std::vector<PayloadId> payloads;
  for (int i = 0; i < 3; ++i) {
    sent.push_back(std::make_shared<Operation>());
    payloads.push_back(sender.send(1, std::vector<float>(10 + i, i), sent.back()));
  }
  for (const PayloadId& payload : payloads) receiver.payloads.post_receive(payload);
  for (const int i : {2, 0, 1}) {
    CAPTURE(i);
    CHECK(receiver.received(payloads[i]) == std::vector<float>(10 + i, i));
  }
  for (const Pending& operation : sent) CHECK(sender.completions.next() == operation);
}

TEST_CASE("ranks that send each other at once do not wait for each other's programs",
          "[validate][payloads]") {
  test::FakeChannels channels;
  Side one(channels, 0), other(channels, 1);
  const auto there = std::make_shared<Operation>(), back = std::make_shared<Operation>();
  const PayloadId a = one.send(1, {1, 2}, there), b = other.send(0, {3, 4, 5}, back);
  other.payloads.post_receive(a);  // the message threads do this, independently of the programs
  one.payloads.post_receive(b);
  CHECK(one.completions.next() == there);
  CHECK(other.completions.next() == back);
  CHECK(one.received(b) == std::vector<float>{3, 4, 5});
  CHECK(other.received(a) == std::vector<float>{1, 2});
}

TEST_CASE("payload buffers are used again, also those that no program took in an earlier run",
          "[validate][payloads]") {
  test::FakeChannels channels;
  Side sender(channels, 0), receiver(channels, 1);
  const auto sent = std::make_shared<Operation>();
  const PayloadId lost = sender.send(1, std::vector<float>(100, 1.0F), sent);
  receiver.payloads.post_receive(lost);
  receiver.payloads.finish();
  receiver.payloads.begin_run(receiver.completions);
  const PayloadId second = sender.send(1, std::vector<float>(90, 2.0F), sent);
  receiver.payloads.post_receive(second);
  CHECK(receiver.received(second) == std::vector<float>(90, 2.0F));
  const float* memory = receiver.last_memory;
  const PayloadId third = sender.send(1, std::vector<float>(60, 3.0F), sent);
  receiver.payloads.post_receive(third);
  CHECK(receiver.received(third) == std::vector<float>(60, 3.0F));
  CHECK(receiver.last_memory == memory);
  const PayloadId small =
      sender.send(1, std::vector<float>(10, 4.0F), sent);  // too small for the free buffer
  receiver.payloads.post_receive(small);
  CHECK(receiver.received(small) == std::vector<float>(10, 4.0F));
  CHECK(receiver.last_memory != memory);
}

TEST_CASE("transfers that end after the runs tell nobody", "[validate][payloads][faults]") {
  test::FakeChannels channels;
  Side sender(channels, 0), receiver(channels, 1);
  const auto sent = std::make_shared<Operation>();
  auto completions = std::make_unique<CompletionQueue>();
  sender.payloads.begin_run(*completions);
  const PayloadId late = sender.send(1, {1, 2}, sent);
  sender.payloads.end_runs();
  completions.reset();  // as a failed run does while the channel still sends
  receiver.payloads.post_receive(late);
  CHECK(receiver.received(late) == std::vector<float>{1, 2});
  sender.payloads.finish();
}

TEST_CASE("a broken channel fails sends and receives", "[validate][payloads][errors]") {
  test::FakeChannels channels;
  Side sender(channels, 0), receiver(channels, 1);
  const auto sent = std::make_shared<Operation>();
  const PayloadId payload = sender.send(1, {1}, sent);
  channels.fail();
  CHECK(sender.completions.next() == sent);
  CHECK_THROWS_WITH(std::rethrow_exception(sent->error), "the channel failed");
  receiver.payloads.post_receive(payload);
  CHECK_THROWS_WITH(receiver.received(payload), "the channel failed");
}

TEST_CASE("training with payloads from device to device gives the same bits", "[validate][payloads]") {
  struct Case {
    const char* strategy;
    int workers, servers;
    bool by_channels;
  };
  const auto c = GENERATE(values<Case>({
      {"{kind: parameter_server, server: own_device, mode: synchronous, shards: 2}", 2, 2, true},
      {"{kind: parameter_server, server: own_device, shards: 3}", 1, 3, true},
      {"{kind: parameter_server, server: own_device, master: serial}", 1, 1, true},
      {"{kind: elastic_averaging, server: own_device}", 1, 1, true},
      // Compressed gradients are in host memory.
      {"{kind: parameter_server, server: own_device, compression: fp16, shards: 2}", 1, 2, false},
  }));
  CAPTURE(c.strategy);
  const Plan plan = plan_of(c.strategy, c.workers, c.servers, 4);
  test::FakeChannels channels;
  CHECK(trained(plan, kMomentum, {.make = test::make_guarded_backend, .channels = &channels}) ==
        trained(plan, kMomentum));
  if (c.by_channels) CHECK(channels.transferred() > 0);
}

TEST_CASE("message pairs are those of the plan's channels, or workers and servers", "[validate][payloads]") {
  Plan plan;
  plan.roles = {{"worker", RankId{0}, 2, 0, true, {}},
                {"stage", RankId{2}, 2, 0, true, {}},
                {"server", RankId{4}, 1, -1, false, {}}};
  CHECK(pairs_of(plan).empty());
  plan.channels = {{RoleId{1}, RoleId{0}}, {RoleId{0}, RoleId{2}}};
  CHECK(pairs_of(plan) == std::vector<std::pair<int, int>>{{0, 4}, {1, 4}, {2, 0}, {3, 1}});
  plan.channels.clear();
  plan.asynchronous = true;
  CHECK(pairs_of(plan) == std::vector<std::pair<int, int>>{{0, 4}, {1, 4}, {2, 4}, {3, 4}, {4, 0}, {4, 2}});
}

}  // namespace stepcast::device_payloads_test
