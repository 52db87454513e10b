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
#include "runtime/transport/tcp_transport.hpp"

namespace stepcast::store_test {
namespace {

/// The place of a new store: an empty folder, or a port that was free a moment ago.
class Place {
 public:
  explicit Place(const std::string& kind) {
    setenv("STEPCAST_STORE_TOKEN", "the token of this run", 1);
    if (kind == "tcp") {
      where = fmt::format("tcp:127.0.0.1:{}", Listener("127.0.0.1").endpoint().port);
    } else {
      std::string name = (std::filesystem::temp_directory_path() / "stepcast-store-XXXXXX").string();
      folder_ = mkdtemp(name.data());
      where = "file:" + folder_.string();
    }
  }
  Place(const Place&) = delete;
  ~Place() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string where;

 private:
  std::filesystem::path folder_;
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
  const std::string kind = GENERATE(as<std::string>{}, "file", "tcp");
  const int ranks = GENERATE(2, 4);
  CAPTURE(kind, ranks);
  const Place place(kind);
  const auto value = [](int rank) {
    return std::string("\0\n", 2) + std::string(static_cast<std::size_t>(rank) * 1000, 'x') + '\xff';
  };
  std::vector<std::function<int()>> bodies;
  for (int rank = 0; rank < ranks; ++rank) {
    bodies.push_back([&, rank] {
      const auto store = open_store(place.where, rank, 20);
      store->put("value", value(rank));
      int right = 0;
      for (int other = 0; other < ranks; ++other) right += store->get(other, "value") == value(other) ? 1 : 0;
      store->put("done", "");
      for (int other = 0; rank == 0 && other < ranks; ++other) store->get(other, "done");
      return right;
    });
  }
  CHECK(in_processes(bodies) == std::vector<int>(static_cast<std::size_t>(ranks), ranks));
}

TEST_CASE("a rank that dies before it puts its value is named by the ranks that wait for it",
          "[validate][store][faults]") {
  const std::string kind = GENERATE(as<std::string>{}, "file", "tcp");
  CAPTURE(kind);
  const Place place(kind);
  const std::string shown = kind == "tcp" ? place.where : place.where.substr(5);
  const auto waits = [&](int rank) {
    const auto store = open_store(place.where, rank, 0.3);
    const std::string text = lost([&] { store->get(2, "nccl"); });
    store->put("said", "");
    if (rank == 0) store->get(1, "said");  // rank 0 serves the store, so it ends last
    return text == fmt::format("rank 2 put no nccl into the store {} within 0.3 s", shown) ? 0 : 1;
  };
  const std::vector<int> codes = in_processes({[&] { return waits(0); }, [&] { return waits(1); },
                                               [&] {
                                                 const auto store = open_store(place.where, 2, 20);
                                                 store->put("other", "");
                                                 return 7;  // without putting its value
                                               }});
  CHECK(codes == std::vector<int>{0, 0, 7});
}

TEST_CASE("threads of a rank use its store at the same time, while some of them wait", "[validate][store]") {
  const std::string kind = GENERATE(as<std::string>{}, "file", "tcp");
  CAPTURE(kind);
  constexpr int kThreads = 8, kKeys = 20;
  const Place place(kind);
  const auto key = [](int thread, int i) { return fmt::format("key-{}-{}", thread, i); };
  const auto value = [](int rank, int thread, int i) {
    return fmt::format("{} {} {}", rank, thread, i) +
           std::string(static_cast<std::size_t>(100 * i), static_cast<char>('a' + thread));
  };
  // Thread t of a rank waits for thread t + 1 of the other rank before it puts its own next value, so the
  // threads make progress only if no call blocks another.
  const auto talk = [&](int rank) {
    const auto store = open_store(place.where, rank, 20);
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const int other = (thread + 1) % kThreads;
        for (int i = 0; i < kKeys; ++i) {
          if (rank == 0) store->put(key(thread, i), value(rank, thread, i));
          if (store->get(1 - rank, key(other, i)) == value(1 - rank, other, i)) ++right;
          if (rank == 1) store->put(key(thread, i), value(rank, thread, i));
        }
      });
    }
    for (std::thread& one : threads) one.join();
    store->put("done", "");
    if (rank == 0) store->get(1, "done");  // rank 0 serves the store, so it ends last
    return right == kThreads * kKeys ? 0 : 1;
  };
  CHECK(in_processes({[&] { return talk(0); }, [&] { return talk(1); }}) == std::vector<int>{0, 0});
}

TEST_CASE("an error says that rank 0 does not serve the store, or no longer serves it",
          "[validate][store][faults]") {
  const Place place("tcp");
  CHECK_THAT(lost([&] { open_store(place.where, 1, 0.1); }),
             Catch::StartsWith("rank 0 does not listen at " + place.where + " within 0.1 s: "));
  auto served = open_store(place.where, 0, 20);
  const auto other = open_store(place.where, 1, 20);
  other->put("key", "value");
  CHECK(served->get(1, "key") == "value");
  served.reset();
  CHECK(lost([&] { other->get(0, "key"); }) ==
        "rank 0 is gone: its store " + place.where + " does not answer");
}

TEST_CASE("other texts than a folder or an address are refused", "[validate][store][errors]") {
  const std::string text = GENERATE(as<std::string>{}, "", "file:", "mpi", "folder");
  CHECK_THROWS_WITH(open_store(text, 0, 1),
                    "--store: expected file:FOLDER or tcp:ADDRESS:PORT, got \"" + text + "\"");
  const std::string address =
      GENERATE(as<std::string>{}, "tcp:", "tcp:host:80", "tcp:127.0.0.1", "tcp:1.2.3.4:0");
  CHECK_THROWS_WITH(open_store(address, 1, 1),
                    "--store: expected tcp:ADDRESS:PORT with an IPv4 address, got \"" + address + "\"");
  const Place place("tcp");
  const auto first = open_store(place.where, 0, 1);
  CHECK_THROWS_WITH(open_store(place.where, 0, 1),
                    "--store " + place.where + ": cannot listen there: Address already in use");
}

}  // namespace stepcast::store_test
