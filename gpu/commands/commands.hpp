#pragma once

#include "core/cli/command_line.hpp"

namespace stepcast {

// Each function adds one subcommand of stepcast-gpu to the command line; the subcommand's callback runs it.
// Exit codes: core/error.hpp.
void add_gpu_capture(Command app);
void add_gpu_capture_all(Command app);
void add_gpu_check(Command app);
void add_gpu_rank(Command app);
void add_gpu_run(Command app);
void add_gpu_validate(Command app);

}  // namespace stepcast
