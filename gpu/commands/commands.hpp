#pragma once

namespace CLI {
class App;
}

namespace stepcast {

// Each function adds one subcommand of stepcast-gpu to the command line; the subcommand's callback runs it.
// Exit codes: core/error.hpp.
void add_gpu_capture(CLI::App& app);
void add_gpu_capture_all(CLI::App& app);
void add_gpu_check(CLI::App& app);
void add_gpu_predict(CLI::App& app);
void add_gpu_probe(CLI::App& app);
void add_gpu_rank(CLI::App& app);
void add_gpu_run(CLI::App& app);
void add_gpu_validate(CLI::App& app);

}  // namespace stepcast
