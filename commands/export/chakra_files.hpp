#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/program_log.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The files that were written.
struct ChakraFiles {
  int ranks = 0;
  int groups = 0;  ///< of the file of communicator groups; 0: all collectives are of all ranks
  std::int64_t nodes = 0;
  std::int64_t messages_of_collectives = 0;  ///< nodes that stand for collectives that ASTRA-sim has not
};

/// Writes the operations of a run as Chakra execution traces, `FOLDER/NAME.RANK.et`, and the groups of ranks
/// that run collectives as `FOLDER/comm_group.json`, as ASTRA-sim reads them. Broadcasts, reduces and
/// exchanges, which it does not simulate, are written as their messages. Times are whole microseconds, whose
/// sum is that of the rank.
/// @throws DiskFull; InputError `FILE: cannot write: REASON`
ChakraFiles write_chakra_files(const std::filesystem::path& folder, const std::string& name, const Plan& plan,
                               const std::vector<ProgramLog>& programs);

}  // namespace stepcast
