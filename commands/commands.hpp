#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/cli/command_line.hpp"

namespace stepcast {

inline constexpr const char* kVersion = STEPCAST_VERSION;

/// The version, the compiler and the versions of libraries, as --version prints them.
std::string version_text();

/// Each function adds a subcommand with its options to the command line; the subcommand's callback does its
/// work. Errors are exceptions, which main.cpp turns into exit codes.
void add_run(Command app);
void add_learn(Command app);
void add_search(Command app);
void add_show(Command app);
void add_capture(Command app);
void add_capture_compression(Command app);
void add_calibrate(Command app);
void add_validate(Command app);
void add_derive(Command app);
void add_import(Command app);
void add_import_platform(Command app);
void add_export(Command app);
void add_compare(Command app);
void add_merge(Command app);
void add_plot(Command app);
void add_collectives(Command app);
void add_schema(Command app);
void add_check(Command app);
void add_init(Command app);
void add_completion(Command app);

/// Path of stepcast-gpu, in the folder of this program. It is a separate program, so that the CUDA libraries
/// are loaded only when they are used.
/// @param device  value of --device, for the error message
/// @throws InputError if the program does not exist, with the reason and the command that builds it
std::filesystem::path gpu_program(const std::string& device);

/// Replaces this process by stepcast-gpu with these arguments. @throws InputError if it cannot be started
[[noreturn]] void run_gpu_program(const std::string& device, const std::vector<std::string>& arguments);

}  // namespace stepcast
