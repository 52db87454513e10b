#include "strategies/parameter_server/server.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

namespace {

Message from(int role, Array what, double read) {
  Message message;
  message.from = role;
  message.buffer.array = what;
  message.value = read;
  return message;
}

using Mode = ServerRules::Mode;

}  // namespace

TEST_CASE("an asynchronous server counts versions and the staleness of what it applies", "[plan]") {
  UpdatePolicy ledger({Mode::asynchronous, {0, 1}, 1, 0, 0});
  CHECK(ledger.arrived(from(0, Array::update, 0)).staleness == 0);
  const auto second = ledger.arrived(from(1, Array::update, 0));
  CHECK(second.staleness == 1);
  CHECK(second.answers == std::vector<int>{1});
  CHECK(ledger.version() == 2);
}

TEST_CASE("gradients want no answer, a read is not applied", "[plan]") {
  UpdatePolicy ledger({Mode::asynchronous, {0}, 1, 0, 0});
  CHECK(ledger.arrived(from(0, Array::gradients, 0)).answers.empty());
  const auto read = ledger.arrived(from(0, Array::none, 0));
  CHECK_FALSE(read.applied);
  CHECK(read.answers == std::vector<int>{0});
  CHECK(ledger.version() == 1);
}

TEST_CASE("a round closes with as many updates as it takes, and later ones are dropped", "[plan]") {
  UpdatePolicy ledger({Mode::synchronous, {0, 1, 2}, 2, 9, 0});
  CHECK(ledger.arrived(from(0, Array::update, 0)).answers.empty());
  const auto closing = ledger.arrived(from(2, Array::update, 0));
  CHECK(closing.applied);
  CHECK(closing.answers == std::vector<int>{0, 2});
  const auto late = ledger.arrived(from(1, Array::update, 0));
  CHECK(late.dropped);
  CHECK_FALSE(late.accepted);
  CHECK(late.answers == std::vector<int>{1});
  CHECK(ledger.version() == 1);
}

TEST_CASE("after the last round everybody is answered at once", "[plan]") {
  UpdatePolicy ledger({Mode::synchronous, {0, 1}, 2, 1, 0});
  ledger.arrived(from(0, Array::update, 0));
  ledger.arrived(from(1, Array::update, 0));
  CHECK(ledger.arrived(from(0, Array::update, 1)).answers == std::vector<int>{0});
}

TEST_CASE("who is ahead by more than the bound waits for the slowest", "[plan]") {
  UpdatePolicy ledger({Mode::bounded_staleness, {0, 1}, 1, 0, 1});
  CHECK(ledger.arrived(from(0, Array::update, 0)).answers == std::vector<int>{0});
  CHECK(ledger.arrived(from(0, Array::update, 1)).answers.empty());
  const auto slow = ledger.arrived(from(1, Array::update, 0));
  CHECK(slow.answers == std::vector<int>{0, 1});
  CHECK(ledger.lead() == 1);
}
