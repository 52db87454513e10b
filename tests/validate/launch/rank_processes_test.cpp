#include "validate/launch/rank_processes.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

namespace stepcast {
namespace {

/// A control block in a file of its own, with a sleeping child process as rank 1.
struct Scene {
  Scene() {
    control = SharedControlBlock::create(file, 2);
    control->rank(RankId{0}).process = getpid();
    child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    control->rank(RankId{1}).process = child;
    set_status(control->rank(RankId{1}), "step 3");
  }
  ~Scene() {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    unlink(file.c_str());
  }

  std::string file = "/dev/shm/stepcast-monitor-test-" + std::to_string(getpid());
  std::unique_ptr<SharedControlBlock> control;
  pid_t child = 0;
};

}  // namespace

TEST_CASE("a dead rank is named with its status, even as a zombie process", "[validate][faults]") {
  Scene scene;
  HeartbeatMonitor monitor(*scene.control, 30);
  CHECK_FALSE(monitor.check());
  kill(scene.child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(scene.child), &info, WEXITED | WNOWAIT);
  const auto failure = monitor.check();
  REQUIRE(failure);
  CHECK(failure_text(*scene.control, *failure) == "rank 1 died during step 3");
  scene.control->rank(RankId{1}).finished = 1;
  CHECK_FALSE(monitor.check());
  CHECK_FALSE(monitor.all_finished());
}

TEST_CASE("a rank whose standard input cannot be written is not started", "[validate][faults]") {
  const std::string log = "/dev/shm/stepcast-input-test-" + std::to_string(getpid());
  Scene scene;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit few{10, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &few);
  const auto started = [&] {
    RankProcesses(*scene.control, {{"/bin/true"}}, log, RankNetwork::of_the_machine, {"more than ten bytes"});
  };
  CHECK_THROWS_AS(started(), std::system_error);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  unlink(log.c_str());
}

TEST_CASE("a rank hangs if one of its threads has no heartbeat within the timeout", "[validate][faults]") {
  const auto thread = GENERATE(&RankState::heartbeat, &RankState::collectives_heartbeat,
                               &RankState::messages_heartbeat, &RankState::input_heartbeat);
  Scene scene;
  RankState& rank = scene.control->rank(RankId{1});
  (rank.*thread) = 1;
  HeartbeatMonitor monitor(*scene.control, 1e-9);
  monitor.check();  // sees the first heartbeats
  for (const auto other : {&RankState::heartbeat, &RankState::collectives_heartbeat,
                           &RankState::messages_heartbeat, &RankState::input_heartbeat}) {
    scene.control->rank(RankId{0}).*other = 2;
    if (other != thread) rank.*other = 2;
  }
  const auto failure = monitor.check();
  REQUIRE(failure);
  CHECK(failure_text(*scene.control, *failure) == "rank 1 hung for 0 s during step 3");
}

TEST_CASE("among several silent ranks the stopped one is reported", "[validate][faults]") {
  Scene scene;
  std::strcpy(scene.control->rank(RankId{1}).host, "h");
  HeartbeatMonitor monitor(*scene.control, 0);
  kill(scene.child, SIGSTOP);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(scene.child), &info, WSTOPPED | WNOWAIT);
  monitor.check();
  const auto failure = monitor.check();
  REQUIRE(failure);
  CHECK(failure_text(*scene.control, *failure) == "rank 1 on h hung for 0 s during step 3");
}

TEST_CASE("among several silent ranks the one that is stopped on another machine is reported",
          "[validate][faults]") {
  Scene scene;
  scene.control->rank(RankId{0}).process = 0;
  scene.control->rank(RankId{1}).process = kStoppedElsewhere;
  HeartbeatMonitor monitor(*scene.control, 0);
  monitor.check();
  const auto failure = monitor.check();
  REQUIRE(failure);
  CHECK(failure->rank == RankId{1});
  CHECK_FALSE(is_stopped(0));
  CHECK_FALSE(is_stopped(kDiedElsewhere));
}

TEST_CASE("a process reads what another process writes into the control block", "[validate]") {
  Scene scene;
  const auto other = SharedControlBlock::open(scene.file, 2);
  CHECK(std::string(other->rank(RankId{1}).status) == "step 3");
  open_stage(*scene.control, 1);
  wait_for_stage(*other, other->rank(RankId{0}), 1);
  CHECK(scene.control->rank(RankId{0}).waiting_for_stage == 1);
}

}  // namespace stepcast
