#include "runtime/rendezvous/store.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "core/error.hpp"

namespace stepcast::store_test {
namespace {

/// The place of a new store: an empty folder.
struct Place {
  Place() {
    std::string name = (std::filesystem::temp_directory_path() / "stepcast-store-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  Place(const Place&) = delete;
  ~Place() { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
};

/// Runs each body in a process of its own. @return their exit codes; 99 after an exception
std::vector<int> in_processes(const std::vector<std::function<int()>>& bodies) {
  std::vector<pid_t> children;
  for (const auto& body : bodies) {
    const pid_t child = fork();
    if (child == 0) {
      int code = 99;
      try {
        code = body();
      } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
      }
      _exit(code);
    }
    children.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
  }
  return codes;
}

std::string lost(const std::function<void()>& call) {
  try {
    call();
  } catch (const RankLost& error) {
    return error.what();
  }
  return "nothing lost";
}

}  // namespace

TEST_CASE("every process gets the values that the others put into the store, byte for byte",
          "[validate][store]") {
  const int ranks = GENERATE(2, 4);
  CAPTURE(ranks);
  const Place place;
  const auto value = [](int rank) { return std::string("\0\n", 2) + std::string(rank * 1000, 'x') + '\xff'; };
  std::vector<std::function<int()>> bodies;
  for (int rank = 0; rank < ranks; ++rank) {
    bodies.push_back([&, rank] {
      const Store store(place.folder, rank, 20);
      store.put("value", value(rank));
      int right = 0;
      for (int other = 0; other < ranks; ++other) right += store.get(other, "value") == value(other) ? 1 : 0;
      return right;
    });
  }
  CHECK(in_processes(bodies) == std::vector<int>(ranks, ranks));
}

TEST_CASE("a rank that dies before it puts its value is named by the ranks that wait for it",
          "[validate][store][faults]") {
  const Place place;
  const auto waits = [&](int rank) {
    const Store store(place.folder, rank, 0.3);
    const std::string text = lost([&] { store.get(2, "nccl"); });
    return text == fmt::format("rank 2 put no nccl into the store {} within 0.3 s", place.folder.string())
               ? 0
               : 1;
  };
  const std::vector<int> codes = in_processes({[&] { return waits(0); }, [&] { return waits(1); },
                                               [&] {
                                                 const Store store(place.folder, 2, 20);
                                                 store.put("other", "");
                                                 return 7;  // without putting its value
                                               }});
  CHECK(codes == std::vector<int>{0, 0, 7});
}

TEST_CASE("threads of a rank use its store at the same time, while some of them wait", "[validate][store]") {
  constexpr int kThreads = 8, kKeys = 20;
  const Place place;
  const auto key = [](int thread, int i) { return fmt::format("key-{}-{}", thread, i); };
  const auto value = [](int rank, int thread, int i) {
    return fmt::format("{} {} {}", rank, thread, i) + std::string(100 * i, static_cast<char>('a' + thread));
  };
  // Thread t of a rank waits for thread t + 1 of the other rank before it puts its own next value, so the
  // threads make progress only if no call blocks another.
  const auto talk = [&](int rank) {
    const Store store(place.folder, rank, 20);
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const int other = (thread + 1) % kThreads;
        for (int i = 0; i < kKeys; ++i) {
          if (rank == 0) store.put(key(thread, i), value(rank, thread, i));
          if (store.get(1 - rank, key(other, i)) == value(1 - rank, other, i)) ++right;
          if (rank == 1) store.put(key(thread, i), value(rank, thread, i));
        }
      });
    }
    for (std::thread& one : threads) one.join();
    return right == kThreads * kKeys ? 0 : 1;
  };
  CHECK(in_processes({[&] { return talk(0); }, [&] { return talk(1); }}) == std::vector<int>{0, 0});
}

TEST_CASE("a value that is there is not overwritten", "[validate][store][errors]") {
  const Place place;
  const Store store(place.folder, 1, 1);
  store.put("nccl", "first");
  CHECK_THROWS_WITH(store.put("nccl", "second"),
                    "rank 1 has put nccl into the store " + place.folder.string() + " before");
  CHECK(store.get(1, "nccl") == "first");
}

}  // namespace stepcast::store_test
