#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/ranks/shared_control_block.hpp"

namespace stepcast {

/// What the files of a failed launch, and the machine, say about the cause. `log` is the output of the ranks,
/// mpirun and ssh.

/// Throws the error that a rank reported in its file, if there is one. The first word of the file is the kind
/// of error.
void throw_reported_error(const std::filesystem::path& folder, int ranks);

/// @param shared  the launch's folder in shared memory
/// @param least   free memory without which ranks do not start [bytes]
/// @throws DiskFull if the log or the space that is left says that the memory was full
void throw_if_memory_full(const std::filesystem::path& log, const std::filesystem::path& shared,
                          std::uintmax_t least);

/// The last line of the log, and the log's name; `otherwise` if there is no line.
std::string last_output(const std::filesystem::path& log, const std::string& otherwise);

/// What mpirun and the ranks wrote, up to a page, and the log's name. The cause may be at its beginning.
std::string all_output(const std::filesystem::path& log);

/// The rank that mpirun reports as the first to end, before it ended the others; none: mpirun reports none.
RankId first_rank_mpirun_reported(const std::filesystem::path& log, int ranks);

/// @throws LimitError if this process, and so each of its children, may open too few files for the ranks
void check_descriptors(int ranks);

}  // namespace stepcast
