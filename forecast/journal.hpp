#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/results/results.hpp"

namespace stepcast {

/// The finished simulations of a run or of its shards, by name (`name_of`). The file has one JSON object per
/// line. A simulation without a result has only the column `failed`, with the reason.
using Journal = std::map<std::string, Row>;

/// Reads a journal. A last line that an interruption cut off is removed from the file. Failed simulations are
/// left out, so that a resumed run tries them again. No file, or an empty path, is an empty journal.
Journal read_journal(const std::filesystem::path& file);

/// The journals of all shards together, with failed simulations; a result replaces a failure.
/// @throws InputError if a file cannot be read, or if two shards have different results of a simulation
Journal merged_journals(const std::vector<std::filesystem::path>& files);

/// Appends a simulation to the file. Does nothing if the path is empty.
void add_to_journal(const std::filesystem::path& file, const std::string& scenario, const std::string& name,
                    const Row& row);

/// The row of a simulation that failed, and the reason in such a row; "" for a row with a result.
Row failed_row(const std::string& reason);
std::string failure_of(const Row& row);

}  // namespace stepcast
