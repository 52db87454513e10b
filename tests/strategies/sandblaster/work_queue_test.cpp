#include "strategies/sandblaster/work_queue.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

namespace {

Order::Kind kind(const Order& order) {
  return order.kind;
}

}  // namespace

TEST_CASE("a replica reads, computes, sends, and waits when nothing is left", "[plan]") {
  WorkQueue board({1, 2, 2, false});
  board.begin_batch();
  for (const Order::Kind expected : {Order::Kind::read, Order::Kind::compute, Order::Kind::compute,
                                     Order::Kind::send, Order::Kind::wait}) {
    CHECK_FALSE((expected != Order::Kind::wait && board.batch_done()));
    CHECK(kind(board.next(0)) == expected);
    board.done(0);
  }
  CHECK(board.batch_done());
}

TEST_CASE("an unfinished portion is copied once, and the first result counts", "[plan]") {
  WorkQueue board({2, 1, 1, true});
  board.begin_batch();
  for (const int replica : {0, 1}) {
    CHECK(kind(board.next(replica)) == Order::Kind::read);
    board.done(replica);
  }
  CHECK(board.next(0).task == 0);
  CHECK(board.next(1).task == 0);
  board.done(1);
  CHECK(kind(board.next(1)) == Order::Kind::send);
  board.done(1);
  CHECK(board.batch_done());
  board.begin_batch();
  board.done(0);  // the copy that came second, after its batch
  CHECK(board.wasted() == 1);
  CHECK_FALSE(board.batch_done());
  CHECK(kind(board.next(0)) == Order::Kind::read);
}

TEST_CASE("without backup tasks the batch waits for who has them", "[plan]") {
  WorkQueue board({2, 1, 1, false});
  board.begin_batch();
  CHECK(kind(board.next(0)) == Order::Kind::read);
  board.done(0);
  CHECK(board.next(0).task == 0);
  CHECK(kind(board.next(1)) == Order::Kind::wait);
}

TEST_CASE("the next order says whether the last result counts", "[plan]") {
  WorkQueue board({2, 2, 2, true});
  board.begin_batch();
  for (const int replica : {0, 1}) {
    CHECK(kind(board.next(replica)) == Order::Kind::read);
    board.done(replica);
    CHECK(board.next(replica).task == replica);
  }
  board.done(0);
  const Order copy = board.next(0);  // of task 1, which replica 1 is slow with
  CHECK(copy.counted);
  CHECK(copy.task == 1);
  board.done(1);
  CHECK(board.next(1).counted);
  board.done(0);
  CHECK_FALSE(board.next(0).counted);  // replica 1 was first
}
