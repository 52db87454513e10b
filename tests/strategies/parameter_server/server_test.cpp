#include "strategies/parameter_server/server.hpp"

#include <catch2/catch.hpp>

#include "strategies/parameter_server/server_plan.hpp"

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

namespace {

double of(const Figures& figures, const std::string& name) {
  for (const auto& [column, value] : figures) {
    if (column == name) return value;
  }
  FAIL("no column " << name);
  return 0;
}

}  // namespace

TEST_CASE("an array lies on the server that holds the least, in the network's order", "[strategies]") {
  std::vector<Bucket> buckets(4);  // the first is the network's last array
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i].gradient = Bytes{1.0 + static_cast<double>(i)};
  // Arrays of 4, 3, 2 and 1 B over two servers: 4 on the first, 3 and 2 on the second, 1 on the first.
  CHECK(servers_of_arrays(buckets, 2) == std::vector<int>{0, 1, 1, 0});
  CHECK(servers_of_arrays(buckets, 1) == std::vector<int>{0, 0, 0, 0});
}

TEST_CASE("staleness leaves out the first update of each worker, whenever it came", "[strategies]") {
  // There are two fast workers and a slow one, whose first update is the third last.
  const Records records{{"staleness", {1, 2, 1, 3, 0}}, {"first_staleness", {0, 1, 9}}};
  const Figures figures = server_figures({}, records, 1);
  CHECK(of(figures, "staleness_mean") == (1 + 2 + 1 + 3 + 0) / 5.0);
  CHECK(of(figures, "staleness_p95") == 3);
  CHECK(of(figures, "staleness_max") == 3);
}

TEST_CASE("the 95th percentile of staleness is the least that 95 of 100 updates keep", "[strategies]") {
  Records records;
  for (int i = 1; i <= 100; ++i) records["staleness"].push_back(i);
  const Figures figures = server_figures({}, records, 1);
  CHECK(of(figures, "staleness_mean") == 50.5);
  CHECK(of(figures, "staleness_p95") == 95);
  CHECK(of(figures, "staleness_max") == 100);
}

TEST_CASE("a server's utilization, knee and dropped share follow from what it recorded", "[strategies]") {
  const Records records{{"server_busy", {0.1, 0.2, 0.3}}, {"server_idle", {0.2, 0.1, 0.1}},
                        {"applied", {1, 1, 1}},           {"staleness", {0}},
                        {"first_staleness", {0, 0}},      {"dropped", {1}}};
  ServerCounts counts;
  counts.mode = ServerRules::Mode::synchronous;
  counts.own_seconds = 0.8;
  counts.updates_a_step = 6;
  const Figures figures = server_figures(counts, records, 2);
  CHECK(of(figures, "server_utilization") == Approx(0.6));
  CHECK(of(figures, "master_seconds") == Approx(0.2));
  CHECK(of(figures, "knee_workers") == Approx(5));
  CHECK(of(figures, "updates_per_second") == Approx(3));
  CHECK(of(figures, "dropped_share") == Approx(0.25));
}
