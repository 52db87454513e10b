#pragma once

namespace CLI {
class App;
}

namespace stepcast {

inline constexpr const char* kVersion = STEPCAST_VERSION;

/// Each function adds a subcommand with its options to the command line; the subcommand's callback does its
/// work. Errors are exceptions, which main.cpp turns into exit codes.
void add_run(CLI::App& app);
void add_learn(CLI::App& app);
void add_search(CLI::App& app);
void add_show(CLI::App& app);
void add_capture(CLI::App& app);
void add_capture_compression(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_validate(CLI::App& app);
void add_derive(CLI::App& app);
void add_import(CLI::App& app);
void add_compare(CLI::App& app);
void add_plot(CLI::App& app);

}  // namespace stepcast
