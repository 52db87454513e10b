#pragma once

#include <filesystem>
#include <string>
#include <vector>

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

}  // namespace stepcast
