#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/ranks/cluster.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "validate/launch/rank_agent.hpp"

namespace stepcast {

/// Ranks on other machines.
struct RemoteRanks {
  std::vector<Host> hosts;  ///< started by ssh, in this order; empty: mpirun or srun has started all ranks
  BindAddress bind;         ///< where the launcher listens
  std::string rsh = "ssh";  ///< called as `rsh HOST PROGRAM agent`, like ssh
  std::string token;        ///< shown by ranks that connect
  std::filesystem::path scenario;  ///< sent to the ranks, which read it in a folder of their own
  bool computes = true;            ///< false: ranks sleep, so a host may have more ranks than cores
};

/// 128 random bits in hexadecimal. @throws std::system_error
std::string random_token();

/// This machine's address from which `host` is reached. @throws InputError if the name has no address
std::string address_towards(const std::string& host);

/// The host of a rank, from the hello of its agent.
struct RankHost {
  std::string name, address, processor;
  int cores = 0;
  double mhz = 0;
  double clock_offset = 0;       ///< CLOCK_MONOTONIC there minus here [s]
  double clock_uncertainty = 0;  ///< half of the shortest round trip [s]
};

/// The endpoint to which the agents of ranks on other machines connect. It copies the states of their ranks
/// into the control block, as if they ran here, their files into the launcher's folder, and the endpoints of
/// each rank to all others. Connections that do not show the token (PendingConnections) are named in
/// strangers.log.
class Rendezvous {
 public:
  /// Listens. @param arguments  of stepcast-rank, for all ranks @throws InputError if the address cannot be
  /// bound
  Rendezvous(const RemoteRanks& ranks, const SharedControlBlock& control, std::filesystem::path folder,
             std::vector<std::string> arguments);
  Rendezvous(const Rendezvous&) = delete;
  /// Ends all ranks.
  ~Rendezvous();

  std::string endpoint() const;  ///< ADDRESS:PORT
  /// Starts the ranks when all agents are there, once, and writes hosts.csv. Call it several times a second.
  /// @throws InputError that names a host with another stepcast-rank, or with fewer cores than ranks
  void check();
  /// A rank whose agent has not connected: `suspect` if it is one, or else the first; none: all have.
  RankId unconnected(RankId suspect);
  /// Sends all text files of the folder to all ranks, and opens a stage.
  void open_stage(std::uint32_t stage);

 private:
  struct Connection {
    int socket = -1;
    std::string peer = {};
    RankId rank = {};  ///< none: the agent has not named it
    std::mutex sending = {};
    std::thread thread = {};
  };

  void accept_connections();
  void admit(int socket, const std::string& peer);
  void note_stranger(const std::string& peer, const std::string& why);
  void serve(Connection& connection);
  bool take_hello(Connection& connection);
  void measure_clock(Connection& connection, RankHost& host);
  void take_frames(Connection& connection);
  void take_file(const Connection& connection, const Frame& frame);
  void send(Connection& connection, const Frame& frame);
  void send_to_all(const Frame& frame, RankId except = {});
  void start_ranks();
  void write_hosts() const;

  const RemoteRanks& ranks_;
  const SharedControlBlock& control_;
  std::filesystem::path folder_;
  std::vector<std::string> arguments_;
  std::string program_hash_;
  std::mutex mutex_;  ///< guards the members below
  std::vector<RankHost> hosts_;
  std::vector<Connection*> of_rank_;  ///< null: not there yet
  std::exception_ptr error_;
  std::list<Connection> connections_;  ///< used by accepting_ until it ends
  bool started_ = false;
  std::atomic<int> strangers_ = 0;
  std::atomic<bool> stopping_ = false;
  int port_ = 0, listener_ = -1;
  std::thread accepting_;  // last: it uses the other members
};

}  // namespace stepcast
