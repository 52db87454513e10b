#include "validate/watch.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

namespace stepcast {
namespace {

/// A control in a file of its own with a child that sleeps as its rank 1.
struct Scene {
  Scene() {
    control = Control::create(file, 2);
    control->rank(0).process = getpid();
    child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    control->rank(1).process = child;
    say(control->rank(1), "step 3");
  }
  ~Scene() {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    unlink(file.c_str());
  }

  std::string file = "/dev/shm/stepcast-watch-test-" + std::to_string(getpid());
  std::unique_ptr<Control> control;
  pid_t child = 0;
};

}  // namespace

TEST_CASE("a rank that died is named with what it did, also while nobody has collected it",
          "[validate][faults]") {
  Scene scene;
  Watch watch(*scene.control, 30);
  CHECK_FALSE(watch.look());
  kill(scene.child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(scene.child), &info, WEXITED | WNOWAIT);
  const auto lost = watch.look();
  REQUIRE(lost);
  CHECK(named(*scene.control, *lost) == "rank 1 died during step 3");
  scene.control->rank(1).finished = 1;
  CHECK_FALSE(watch.look());
  CHECK_FALSE(watch.all_finished());
}

TEST_CASE("a rank one of whose threads gives no sign of life for a heartbeat hangs", "[validate][faults]") {
  const auto thread = GENERATE(&RankState::beat, &RankState::collectives_beat, &RankState::messages_beat);
  Scene scene;
  RankState& rank = scene.control->rank(1);
  (rank.*thread) = 1;
  Watch watch(*scene.control, 1e-9);
  watch.look();  // sees the first signs
  for (const auto other : {&RankState::beat, &RankState::collectives_beat, &RankState::messages_beat}) {
    scene.control->rank(0).*other = 2;
    if (other != thread) rank.*other = 2;
  }
  const auto lost = watch.look();
  REQUIRE(lost);
  CHECK(named(*scene.control, *lost) == "rank 1 hung for 0 s during step 3");
}

TEST_CASE("of several silent ranks the one that is stopped is to blame", "[validate][faults]") {
  Scene scene;
  std::strcpy(scene.control->rank(1).host, "h");
  Watch watch(*scene.control, 0);
  kill(scene.child, SIGSTOP);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(scene.child), &info, WSTOPPED | WNOWAIT);
  watch.look();
  const auto lost = watch.look();
  REQUIRE(lost);
  CHECK(named(*scene.control, *lost) == "rank 1 on h hung for 0 s during step 3");
}

TEST_CASE("what one process writes into a control another reads", "[validate]") {
  Scene scene;
  const auto other = Control::open(scene.file, 2);
  CHECK(std::string(other->rank(1).doing) == "step 3");
  open_gate(*scene.control, 1);
  wait_at_gate(*other, other->rank(0), 1);
  CHECK(scene.control->rank(0).waiting == 1);
}

}  // namespace stepcast
