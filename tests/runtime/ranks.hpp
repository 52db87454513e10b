#pragma once

#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/transport/shared_memory_transport.hpp"
#include "runtime/transport/tcp_transport.hpp"

namespace stepcast {

/// Zeroed memory of SharedMemoryTransport.
struct RingMemory {
  explicit RingMemory(int ranks) {
    const std::size_t bytes = (SharedMemoryTransport::bytes_for(ranks) + 63) / 64 * 64;
    start = std::aligned_alloc(64, bytes);
    std::fill_n(static_cast<char*>(start), bytes, 0);
  }
  RingMemory(const RingMemory&) = delete;
  ~RingMemory() { std::free(start); }

  void* start;
};

/// Runs `body` for each rank in a thread of its own, with a transport of the kind ("memory" or "sockets") and
/// a second one over memory. Rethrows the exception of a thread.
inline void run_ranks(const std::string& kind, int ranks,
                      const std::function<void(Transport&, Transport&)>& body) {
  const RingMemory memory(ranks), message_memory(ranks);
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<Endpoint> endpoints;
  for (int rank = 0; rank < ranks; ++rank) {
    listeners.push_back(std::make_unique<Listener>("127.0.0.1"));
    endpoints.push_back(listeners.back()->endpoint());
  }
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const std::size_t index = rank;
      try {
        const auto transport = kind == "memory"
                                   ? shared_memory_transport({memory.start}, RankId(rank), ranks, 0)
                                   : connect_sockets(*listeners[index], RankId(rank), endpoints);
        const auto second = shared_memory_transport({message_memory.start}, RankId(rank), ranks, 0);
        body(*transport, *second);
      } catch (...) {
        errors[index] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

inline void run_ranks(const std::string& kind, int ranks, const std::function<void(Transport&)>& body) {
  run_ranks(kind, ranks, [&body](Transport& transport, Transport&) { body(transport); });
}

}  // namespace stepcast
