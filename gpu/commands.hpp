#pragma once

namespace CLI {
class App;
}

namespace stepcast {

/// One function a subcommand of stepcast-gpu: adds its options to the command line; what it does when chosen
/// is its callback. Exit codes are those of main.cpp.
void add_gpu_capture(CLI::App& app);
void add_gpu_capture_all(CLI::App& app);
void add_gpu_check(CLI::App& app);
void add_gpu_predict(CLI::App& app);
void add_gpu_probe(CLI::App& app);
void add_gpu_rank(CLI::App& app);
void add_gpu_run(CLI::App& app);
void add_gpu_validate(CLI::App& app);

}  // namespace stepcast
