#include "strategies/parameter_server/server.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

namespace {

Message from(RoleId role, Array what, double read) {
  Message message;
  message.from = role;
  message.buffer.array = what;
  message.value = read;
  return message;
}

constexpr RoleId k0{0}, k1{1}, k2{2};  // clients

using Mode = ServerRules::Mode;

}  // namespace

TEST_CASE("an asynchronous server counts versions and the staleness of what it applies", "[plan]") {
  UpdatePolicy ledger({Mode::asynchronous, {k0, k1}, 1, 0, 0});
  CHECK(ledger.arrived(from(k0, Array::update, 0)).staleness == 0);
  const auto second = ledger.arrived(from(k1, Array::update, 0));
  CHECK(second.staleness == 1);
  CHECK(second.answers == std::vector{k1});
  CHECK(ledger.version() == 2);
}

TEST_CASE("an update may want no answer, a read is not applied", "[plan]") {
  UpdatePolicy ledger({Mode::asynchronous, {k0}, 1, 0, 0});
  Message update = from(k0, Array::gradients, 0);
  update.answered = false;
  CHECK(ledger.arrived(update).answers.empty());
  const auto read = ledger.arrived(from(k0, Array::none, 0));
  CHECK_FALSE(read.applied);
  CHECK(read.answers == std::vector{k0});
  CHECK(ledger.version() == 1);
}

TEST_CASE("a round closes with as many updates as it takes, and later ones are dropped", "[plan]") {
  UpdatePolicy ledger({Mode::synchronous, {k0, k1, k2}, 2, 9, 0});
  CHECK(ledger.arrived(from(k0, Array::update, 0)).answers.empty());
  const auto closing = ledger.arrived(from(k2, Array::update, 0));
  CHECK(closing.applied);
  CHECK(closing.answers == std::vector{k0, k2});
  const auto late = ledger.arrived(from(k1, Array::update, 0));
  CHECK(late.dropped);
  CHECK_FALSE(late.accepted);
  CHECK(late.answers == std::vector{k1});
  CHECK(ledger.version() == 1);
}

TEST_CASE("after the last round everybody is answered at once", "[plan]") {
  UpdatePolicy ledger({Mode::synchronous, {k0, k1}, 2, 1, 0});
  ledger.arrived(from(k0, Array::update, 0));
  ledger.arrived(from(k1, Array::update, 0));
  CHECK(ledger.arrived(from(k0, Array::update, 1)).answers == std::vector{k0});
}

TEST_CASE("a worker that is ahead by more than the bound waits for the slowest", "[plan]") {
  UpdatePolicy ledger({Mode::bounded_staleness, {k0, k1}, 1, 0, 1});
  CHECK(ledger.arrived(from(k0, Array::update, 0)).answers == std::vector{k0});
  CHECK(ledger.arrived(from(k0, Array::update, 1)).answers.empty());
  const auto slow = ledger.arrived(from(k1, Array::update, 0));
  CHECK(slow.answers == std::vector{k0, k1});
  CHECK(ledger.lead() == 1);
}
