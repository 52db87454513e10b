#pragma once

#include <string>
#include <vector>

#include "core/cli/command_line.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"

namespace stepcast {

// Options that several commands about scenarios have. Each function adds one of them.

/// -o, --output
void add_results_folder(const Command& command, std::string& folder,
                        const std::string& help = "Folder for the results. Default: results/SCENARIO-NAME.");

/// -j, --jobs. @param tasks  what runs at the same time, such as "simulations"
void add_jobs(const Command& command, int& jobs, const std::string& tasks);

/// `jobs`, or the number of cores if it is 0.
int jobs_or_cores(int jobs);

/// --set
void add_settings(const Command& command, std::vector<std::string>& settings);

/// --memory-limit. @param consequence  what happens above the limit, such as "Refuse to start"
void add_memory_limit(const Command& command, std::string& limit, const std::string& consequence);

/// --no-advice
void add_no_advice(const Command& command, bool& no_advice);

/// How to go on with a command that ended early: "continue with --resume (`kept`)".
/// @param kept  what is not done again, such as "finished simulations are kept"
std::string how_to_resume(const std::string& kept);

/// Calls `work`. If it is interrupted or the disk is full, the message says how to resume.
template <class Work>
auto resumable(const std::string& kept, const Work& work) {
  try {
    return work();
  } catch (const Interrupted&) {
    throw Interrupted("interrupted; " + how_to_resume(kept));
  } catch (const DiskFull& full) {
    throw DiskFull(full.what() + ("; free some space and " + how_to_resume(kept)));
  }
}

/// --time-limit. @param condition  the beginning of the help, which goes on with "would take longer"
void add_time_limit(const Command& command, std::string& limit, const std::string& condition);

}  // namespace stepcast
