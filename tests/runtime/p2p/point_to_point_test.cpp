#include "runtime/p2p/point_to_point.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "ranks.hpp"
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

}  // namespace stepcast::point_to_point_test
