#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// Where ranks run and what joins them.
struct Cluster {
  enum class Kind {
    memory,     ///< one machine, shared memory
    loopback,   ///< one machine, sockets
    netcluster  ///< a network namespace each, rate-limited links (tools/netcluster)
  };

  Kind kind{};
  std::string name = "memory";  ///< as the user wrote it
  int ranks = 2;
  double rate = 0;  ///< netcluster: of a node's link, each way [bit/s]
  int packet =
      65536;  ///< netcluster: the longest on a link; what passes at once after a pause is little more [bytes]
  int racks = 1;      ///< netcluster
  double uplink = 0;  ///< netcluster, two racks: of the link between them [bit/s]

  bool sockets() const { return kind != Kind::memory; }
  /// Bytes of a connection that may be on their way; 0: as the system thinks best. In a netcluster few enough
  /// for a switch port never to overflow: TCP would lose packets, and time (up to 0.2 s) until it notices.
  int window() const { return kind == Kind::netcluster ? 131072 : 0; }
};

/// "memory", "loopback", "netcluster:1gbit", "netcluster:100mbit,packet=8192",
/// "netcluster:1gbit,racks=2,uplink=200mbit".
/// @throws InputError that names the option
Cluster read_cluster(const std::string& text, int ranks);

/// The machine that a rank runs on: this one's name, or the address of its namespace.
std::string host_of(const Cluster& cluster, int rank);

/// "1gbit" for tools/netcluster.
std::string rate_text(double bits_per_second);

}  // namespace stepcast
