#include "validate/parcels.hpp"

#include <catch2/catch.hpp>

#include "fake_links.hpp"
#include "guarded_backend.hpp"
#include "hand_worker.hpp"
#include "validate/message_pairs.hpp"

namespace stepcast {
namespace {

/// One rank's parcels, on memory that the host cannot touch.
struct Side {
  std::unique_ptr<Backend> backend = test::make_guarded_backend();
  DeviceMemory& memory = *backend->device_memory();
  Completions completions;
  Parcels parcels;

  Side(test::FakeLinks& links, int rank) : parcels(memory, rank, 2, links.of(rank, memory)) {
    parcels.begin(completions);
  }

  Parcel send(int to, const std::vector<float>& values, const Pending& operation) {
    const Parcels::Room room = parcels.room(static_cast<std::int64_t>(values.size()));
    memory.to_device(values.data(), room.memory.get(), values.size());
    return parcels.send(to, room, static_cast<std::int64_t>(values.size()), operation);
  }
  /// What a program does with a message that it has received.
  std::vector<float> received(const Parcel& parcel) {
    const auto operation = std::make_shared<Operation>();
    operation->message.parcel = parcel;
    if (parcels.still_coming(operation)) {
      while (completions.next() != operation) {
      }
      REQUIRE_FALSE(parcels.still_coming(operation));
    }
    if (operation->error) std::rethrow_exception(operation->error);
    Parcels::Room room = parcels.take(parcel);
    std::vector<float> values(static_cast<std::size_t>(parcel.floats));
    memory.to_host(memory.mark(), room.memory.get(), values.data(), values.size());
    last_memory = room.memory.get();
    parcels.give_back(std::move(room));
    return values;
  }
  const float* last_memory = nullptr;
};

}  // namespace

TEST_CASE("parcels of a pair arrive in order and are taken in any", "[validate][parcels]") {
  test::FakeLinks links;
  Side sender(links, 0), receiver(links, 1);
  std::vector<Pending> sent;
  std::vector<Parcel> parcels;
  for (int i = 0; i < 3; ++i) {
    sent.push_back(std::make_shared<Operation>());
    parcels.push_back(sender.send(
        1, std::vector<float>(static_cast<std::size_t>(10 + i), static_cast<float>(i)), sent.back()));
  }
  for (const Parcel& parcel : parcels) receiver.parcels.expect(parcel);
  for (const int i : {2, 0, 1}) {
    CAPTURE(i);
    CHECK(receiver.received(parcels[static_cast<std::size_t>(i)]) ==
          std::vector<float>(static_cast<std::size_t>(10 + i), static_cast<float>(i)));
  }
  for (const Pending& operation : sent) CHECK(sender.completions.next() == operation);
}

TEST_CASE("ranks that send each other at once do not wait for each other's programs", "[validate][parcels]") {
  test::FakeLinks links;
  Side one(links, 0), other(links, 1);
  const auto there = std::make_shared<Operation>(), back = std::make_shared<Operation>();
  const Parcel a = one.send(1, {1, 2}, there), b = other.send(0, {3, 4, 5}, back);
  other.parcels.expect(a);  // by the threads of mail, whatever programs do
  one.parcels.expect(b);
  CHECK(one.completions.next() == there);
  CHECK(other.completions.next() == back);
  CHECK(one.received(b) == std::vector<float>{3, 4, 5});
  CHECK(other.received(a) == std::vector<float>{1, 2});
}

TEST_CASE("memory of parcels is used again, also of those that nobody took in an earlier run",
          "[validate][parcels]") {
  test::FakeLinks links;
  Side sender(links, 0), receiver(links, 1);
  const auto sent = std::make_shared<Operation>();
  const Parcel lost = sender.send(1, std::vector<float>(100, 1.0F), sent);
  receiver.parcels.expect(lost);
  receiver.parcels.finish();
  receiver.parcels.begin(receiver.completions);
  const Parcel second = sender.send(1, std::vector<float>(90, 2.0F), sent);
  receiver.parcels.expect(second);
  CHECK(receiver.received(second) == std::vector<float>(90, 2.0F));
  const float* memory = receiver.last_memory;
  const Parcel third = sender.send(1, std::vector<float>(60, 3.0F), sent);
  receiver.parcels.expect(third);
  CHECK(receiver.received(third) == std::vector<float>(60, 3.0F));
  CHECK(receiver.last_memory == memory);
  const Parcel small = sender.send(1, std::vector<float>(10, 4.0F), sent);  // would waste most of it
  receiver.parcels.expect(small);
  CHECK(receiver.received(small) == std::vector<float>(10, 4.0F));
  CHECK(receiver.last_memory != memory);
}

TEST_CASE("a link that breaks fails what is sent and what is awaited", "[validate][parcels][errors]") {
  test::FakeLinks links;
  Side sender(links, 0), receiver(links, 1);
  const auto sent = std::make_shared<Operation>();
  const Parcel parcel = sender.send(1, {1}, sent);
  links.cut();
  CHECK(sender.completions.next() == sent);
  CHECK_THROWS_WITH(std::rethrow_exception(sent->error), "the link was cut");
  receiver.parcels.expect(parcel);
  CHECK_THROWS_WITH(receiver.received(parcel), "the link was cut");
}

TEST_CASE("messages whose payload goes from device to device train to the same bits", "[validate][parcels]") {
  struct Case {
    const char* strategy;
    int workers, servers;
    bool by_parcel;
  };
  const auto c = GENERATE(values<Case>({
      {"{kind: parameter_server, server: own_device, mode: synchronous, shards: 2}", 2, 2, true},
      {"{kind: parameter_server, server: own_device, shards: 3}", 1, 3, true},
      {"{kind: parameter_server, server: own_device, master: serial}", 1, 1, true},
      {"{kind: elastic_averaging, server: own_device}", 1, 1, true},
      // What travels compressed lies on the host.
      {"{kind: parameter_server, server: own_device, compression: fp16, shards: 2}", 1, 2, false},
  }));
  CAPTURE(c.strategy);
  const Plan plan = plan_of(c.strategy, c.workers, c.servers, 4);
  test::FakeLinks links;
  CHECK(trained(plan, kMomentum, {.make = test::make_guarded_backend, .links = &links}) ==
        trained(plan, kMomentum));
  if (c.by_parcel) CHECK(links.carried() > 0);
}

TEST_CASE("ranks that may send each other messages are those of channels, or those that train and serve",
          "[validate][parcels]") {
  Plan plan;
  plan.roles = {{"worker", 0, 2, 0, true, {}}, {"stage", 2, 2, 0, true, {}}, {"server", 4, 1, -1, false, {}}};
  CHECK(message_pairs(plan).empty());
  plan.channels = {{1, 0}, {0, 2}};
  CHECK(message_pairs(plan) == std::vector<std::pair<int, int>>{{0, 4}, {1, 4}, {2, 0}, {3, 1}});
  plan.channels.clear();
  plan.asynchronous = true;
  CHECK(message_pairs(plan) ==
        std::vector<std::pair<int, int>>{{0, 4}, {1, 4}, {2, 4}, {3, 4}, {4, 0}, {4, 2}});
}

}  // namespace stepcast
