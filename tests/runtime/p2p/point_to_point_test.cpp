#include "runtime/p2p/point_to_point.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "fake_channels.hpp"
#include "guarded_backend.hpp"
#include "hand_worker.hpp"
#include "ranks.hpp"
#include "runtime/p2p/device_payloads.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast::point_to_point_test {
namespace {

Message envelope(int from, int tag, double value) {
  Message message;
  message.from = RoleId(from);
  message.tag = MessageTag(tag);
  message.value = value;
  message.buffer = {Array::parameters, {3, 5}, {8}};
  return message;
}

/// Posts a receive and waits for its message.
Message received(PointToPoint& messages, CompletionQueue& completions, int tag, RoleId role,
                 std::vector<float>* payload = nullptr) {
  const auto operation = std::make_shared<Operation>();
  messages.receive(MessageTag(tag), role, operation, [payload](const Buffer&) {
    return payload == nullptr ? std::span<float>() : std::span<float>(*payload);
  });
  Pending done;
  while (!(done = completions.next())) {
  }
  return done->message;
}

}  // namespace

TEST_CASE("messages arrive complete, matched by tag and role, in the order of their sender",
          "[validate][messages]") {
  const std::string kind = GENERATE("memory", "sockets");
  constexpr std::size_t kLong = 300'000;  // more than a ring buffer holds
  run_ranks(kind, 3, [&](Transport& transport, Transport& other) {
    CompletionQueue completions;
    {
      PointToPoint messages(transport);
      messages.begin_run(1, completions);
      if (!transport.is_rank_0()) {
        std::vector<float> payload(kLong);
        std::iota(payload.begin(), payload.end(), static_cast<float>(transport.rank().value));
        for (int i = 0; i < 3; ++i)
          messages.send(RankId{0}, envelope(transport.rank().value, 7, i), payload, nullptr);
        messages.send(RankId{0}, envelope(transport.rank().value, 8, 100), {}, nullptr);
        received(messages, completions, 9, RoleId{0});
      } else {
        CHECK(received(messages, completions, 8, RoleId{2}).value == 100);  // overtakes unexpected messages
        std::vector<float> payload(kLong);
        for (int i = 0; i < 3; ++i) {
          const Message message = received(messages, completions, 7, RoleId{2}, &payload);
          CHECK(message.value == i);
          CHECK(message.from == RoleId{2});
          CHECK(message.buffer.elements.begin == 3);
          CHECK(payload.front() == 2);
          CHECK(payload.back() == 2 + static_cast<float>(kLong) - 1);
        }
        for (int i = 0; i < 3; ++i) CHECK(received(messages, completions, 7, kAnyone).value == i);
        const auto sent = std::make_shared<Operation>();
        messages.send(RankId{1}, envelope(0, 9, 0), {}, sent);
        messages.send(RankId{2}, envelope(0, 9, 0), {}, sent);
        int posted = 0;
        while (posted < 2) posted += completions.next() == sent ? 1 : 0;
      }
      barrier(other);  // no rank disconnects before all messages have arrived
    }
  });
}

TEST_CASE("memory of large messages is used again, whatever small messages came before",
          "[validate][messages]") {
  constexpr int kSmall = 40, kLarge = 20;
  constexpr std::size_t kFloats = 10'000'000;  // so many that freed memory goes back to the system
  run_ranks("memory", 2, [&](Transport& transport, Transport& other) {
    CompletionQueue completions;
    {
      PointToPoint messages(transport);
      messages.begin_run(1, completions);
      std::vector<float> payload(transport.is_rank_0() ? 0 : kFloats);
      const RankId peer(1 - transport.rank().value);
      for (int i = 0; i < kSmall; ++i)
        messages.send(peer, envelope(transport.rank().value, 1, i), std::vector<float>(i), nullptr);
      for (int i = 0; i < kSmall; ++i) received(messages, completions, 1, RoleId(peer.value));
      const auto faults = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_minflt;
      };
      const long before = faults();
      for (int i = 0; i < kLarge; ++i) {
        if (transport.is_rank_0()) {
          messages.send(peer, envelope(0, 2, i), std::vector<float>(), nullptr);
          received(messages, completions, 3, RoleId{1});
        } else {
          received(messages, completions, 2, RoleId{0});
          messages.send(peer, envelope(1, 3, i), payload, nullptr);
        }
      }
      const long pages = kFloats * sizeof(float) / 4096;
      if (transport.is_rank_0()) CHECK(faults() - before < 10 * pages);
      barrier(other);  // no rank disconnects before all messages have arrived
    }
  });
}

TEST_CASE("a receive from any role gets the message that is complete first, not the one that began first",
          "[validate][messages]") {
  constexpr std::size_t kLong = 50'000;
  run_ranks("memory", 3, [&](Transport& transport, Transport& other) {
    CompletionQueue completions;
    std::vector<float> payload(kLong, static_cast<float>(transport.rank().value));
    if (transport.rank() ==
        RankId{
            1}) {  // without PointToPoint: half a message, and the rest after the other message has arrived
      const InFlightMessage slow = outgoing_message(envelope(1, 7, 1), 1, kLong);
      send(transport, RankId{0}, slow.header.data(), kHeaderFloats);
      send(transport, RankId{0}, payload.data(), kLong / 2);
      barrier(other);
      barrier(other);
      send(transport, RankId{0}, payload.data(), kLong / 2);
    } else {
      PointToPoint messages(transport);
      messages.begin_run(1, completions);
      if (transport.rank() == RankId{2}) {
        barrier(other);
        messages.send(RankId{0}, envelope(2, 7, 2), payload, nullptr);
        received(messages, completions, 9, RoleId{0});
        barrier(other);
      } else {
        const auto first = std::make_shared<Operation>();
        const auto target = [&payload](const Buffer&) { return std::span<float>(payload); };
        messages.receive(MessageTag{7}, kAnyone, first, target);
        barrier(other);
        while (completions.next() != first) {
        }
        CHECK(first->message.from == RoleId{2});
        CHECK(payload == std::vector<float>(kLong, 2));
        messages.send(RankId{2}, envelope(0, 9, 0), {}, nullptr);
        barrier(other);
        CHECK(received(messages, completions, 7, kAnyone, &payload).from == RoleId{1});
        CHECK(payload == std::vector<float>(kLong, 1));
      }
      barrier(other);
      return;
    }
    barrier(other);
  });
}

TEST_CASE("messages of an earlier run are not delivered in a later run", "[validate][messages]") {
  run_ranks("memory", 2, [&](Transport& transport, Transport& other) {
    CompletionQueue completions;
    PointToPoint messages(transport);
    messages.begin_run(1, completions);
    if (transport.rank() == RankId{1}) {
      messages.send(RankId{0}, envelope(1, 5, 1), {}, nullptr);
      messages.begin_run(2, completions);
      messages.send(RankId{0}, envelope(1, 5, 2), {}, nullptr);
      received(messages, completions, 6, RoleId{0});
    } else {
      messages.begin_run(2, completions);
      CHECK(received(messages, completions, 5, RoleId{1}).value == 2);
      const auto sent = std::make_shared<Operation>();
      messages.send(RankId{1}, envelope(0, 6, 0), {}, sent);
      while (completions.next() != sent) {
      }
    }
    barrier(other);
  });
}

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
}  // namespace stepcast::point_to_point_test
