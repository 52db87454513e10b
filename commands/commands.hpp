#pragma once

namespace CLI {
class App;
}

namespace stepcast {

/// One function a subcommand: adds its options to the command line; what it does when chosen is its callback.
/// Exit codes are those of main.cpp.
void add_run(CLI::App& app);
void add_learn(CLI::App& app);
void add_search(CLI::App& app);
void add_show(CLI::App& app);
void add_capture(CLI::App& app);
void add_capture_compression(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_validate(CLI::App& app);
void add_derive(CLI::App& app);
void add_compare(CLI::App& app);
void add_plot(CLI::App& app);

}  // namespace stepcast
