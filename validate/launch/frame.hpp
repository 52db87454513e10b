#pragma once

#include <chrono>
#include <string>

#include "runtime/rendezvous/store_messages.hpp"

namespace stepcast {

/// One message between the launcher and the agent of a rank.
struct Frame {
  enum Kind : char {
    hello = 'h',  ///< from an agent, once: name: its rank; body: what it says of its host, a value a line
    clock = 'c',  ///< asks for, and answers with, CLOCK_MONOTONIC [s]
    job = 'j',    ///< to an agent: arguments of stepcast-rank, each followed by a zero byte
    file = 'f',   ///< a file of the rank's folder, whole
    state = 's',  ///< from an agent: RankState as text
    stage = 'o',  ///< to an agent: open stage 1
    quit = 'q'    ///< to an agent: end the rank
  };
  char kind = 0;
  std::string name = {}, body = {};
};

constexpr std::chrono::seconds kFrameTime(60);           ///< for one frame
constexpr std::size_t kMaxFrame = std::size_t{1} << 28;  ///< longest body [bytes]

bool send_frame(int socket, const Frame& frame, StoreClock::time_point end);
/// @return false if the peer closed the socket, sent something else, or took longer than until `end`
bool receive_frame(int socket, Frame& frame, StoreClock::time_point end);

/// True for names that stay in their folder: letters, digits, '.', '_' and '-', not beginning with '.', and
/// at most one folder, "store/", before them.
bool is_plain_file_name(const std::string& name);

}  // namespace stepcast
