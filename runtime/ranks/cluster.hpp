#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/ranks/shared_control_block.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "runtime/transport/transport.hpp"

namespace stepcast {

/// A machine that runs ranks.
struct Host {
  std::string name;  ///< for ssh; letters, digits, '.', '_' and '-'
  int slots = 1;     ///< ranks
  std::string address =
      {};  ///< IPv4 address at which its ranks listen; empty: the one that reaches the launcher
};

/// Reads a hostfile as Open MPI has them: one `HOST [slots=N] [address=IPV4]` a line; '#' starts a comment.
/// @throws InputError `FILE:LINE:COL: expected WHAT, got "TEXT"`
std::vector<Host> read_hosts(const std::filesystem::path& file);

/// An IPv4 address of one interface, and a port; 0: any free port.
struct BindAddress {
  std::string address;
  int port = 0;
};

/// Reads "10.0.0.1" or "10.0.0.1:29500". @throws InputError that names --bind, also for all interfaces
/// (0.0.0.0)
BindAddress read_bind_address(const std::string& text);

/// The transport of messages and collectives between CPU ranks.
enum class TransportKind {
  own,  ///< shared memory or TCP sockets of this project
  mpi   ///< point-to-point messages of MPI; sums with `all_reduce: mpi` by MPI_Allreduce
};

/// Placement of the ranks of a real run, and the network that connects them.
struct Cluster {
  enum class Kind {
    memory,      ///< one machine, shared memory
    loopback,    ///< one machine, sockets
    netcluster,  ///< a network namespace for each rank, rate-limited links (tools/netcluster)
    hosts        ///< several machines
  };

  Kind kind{};
  std::string name = "memory";  ///< the text that the user gave
  int ranks = 2;
  double rate = 0;     ///< netcluster: rate of a node's link, each direction [bit/s]
  int packet = 65536;  ///< netcluster: longest packet; a burst after a pause is little longer [bytes]
  int racks = 1;       ///< netcluster
  double uplink = 0;   ///< netcluster, two racks: rate of the link between them [bit/s]
  TransportKind transport = TransportKind::own;

  /// True if each rank is a node of the measured platform.
  bool several_nodes() const { return kind == Kind::netcluster || kind == Kind::hosts; }
  bool sockets() const { return kind != Kind::memory; }
  /// Name for tables and files, with the transport where it is not this project's.
  std::string label() const;
  /// Send-buffer size of a connection [bytes]; 0: the system's default. In a netcluster it is so small that
  /// no switch port overflows: TCP would lose packets, and up to 0.2 s until it notices.
  int window() const { return kind == Kind::netcluster ? 131072 : 0; }
};

/// Names of TransportKind, in its order.
const std::vector<std::string>& transport_names();

/// Reads "memory", "loopback", "netcluster:1gbit", "netcluster:100mbit,packet=8192" or
/// "netcluster:1gbit,racks=2,uplink=200mbit".
/// @param transport  one of transport_names()
/// @throws InputError that names the option
Cluster read_cluster(const std::string& text, int ranks, const std::string& transport = "own");

/// The host of a rank: this machine's name, or the address of the rank's namespace in a netcluster.
std::string host_of(const Cluster& cluster, int rank);

/// "1000000kbit", the form that tools/netcluster reads.
std::string rate_text(double bits_per_second);

/// Sets a netcluster up, and takes it down at the end of its lifetime. Does nothing for the other kinds.
class ClusterGuard {
 public:
  /// @param folder  where the output of tools/netcluster is written
  /// @throws InputError with the first error line of tools/netcluster, such as that it needs root
  ClusterGuard(const Cluster& cluster, std::filesystem::path folder);
  ClusterGuard(const ClusterGuard&) = delete;
  ~ClusterGuard();

 private:
  std::filesystem::path folder_;
  bool up_ = false;
};

/// The environment of one rank: its cluster, its output folder, its state and its transports.
struct RankContext {
  Cluster cluster;
  std::filesystem::path folder;  ///< where the rank writes its results
  SharedControlBlock& control;
  RankState& state;  ///< this rank's entry of `control`
  PollingPolicy& polling;
  Transport& transport;           ///< for collectives
  Transport* message_transport;   ///< for point-to-point messages; null in `stepcast calibrate`
  LibraryAllReduce library = {};  ///< of the transport; its sums belong to real runs
  /// Libraries whose all-reduces `stepcast calibrate` measures in addition to this project's.
  std::vector<LibraryAllReduce> compared = {};
};

}  // namespace stepcast
