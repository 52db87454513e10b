#pragma once

#include <filesystem>
#include <string>

#include "validate/launch/launcher.hpp"

namespace stepcast {

/// What the files of a failed launch, and the machine, say about the cause.

/// Throws the error that a rank reported in its file, if there is one. The first word of the file is the kind
/// of error.
void throw_reported_error(const RankJob& job);

/// @param shared  the launch's folder in shared memory
/// @throws DiskFull if the output of the ranks or the space that is left says that the memory was full
void throw_if_memory_full(const RankJob& job, const std::filesystem::path& shared);

/// The last line that the ranks, mpirun or ssh printed, and the file of all; `otherwise` if there is no line.
std::string last_output(const RankJob& job, const std::string& otherwise);

/// The rank that mpirun reports as the first to end, before it ended the others; none: mpirun reports none.
RankId first_rank_mpirun_reported(const RankJob& job);

/// @throws LimitError if this process, and so each of its children, may open too few files for the ranks
void check_descriptors(int ranks);

}  // namespace stepcast
