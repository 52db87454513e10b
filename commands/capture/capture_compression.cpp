#include <fmt/format.h>

#include "commands/commands.hpp"
#include "core/os/atomic_file.hpp"
#include "kernels/timing/compression_timing.hpp"
#include "models/layer_times/compression_times.hpp"

namespace stepcast {

void add_capture_compression(Command app) {
  const Command command = app.add_subcommand(
      "capture-compression",
      "Time the kernels that compress gradients on this machine, and write their times to a file.");
  auto file = std::make_shared<std::filesystem::path>("compression-cpu.yaml");
  auto options = std::make_shared<CompressionCapture>();
  command.add_option("--repeats", options->repeats, "Number of runs of each kernel.")
      .range(3, 1000)
      .show_default();
  command.add_option("-o,--output", *file, "File of compression times.").type_name("FILE").show_default();
  command.footer("Example: stepcast capture-compression -o models/compression/cpu.yaml");
  command.callback([file, options] {
    check_writable(file->has_parent_path() ? file->parent_path() : ".");
    options->name = file->stem().string();
    options->command = fmt::format("stepcast capture-compression --repeats {}", options->repeats);
    const CompressionTrace trace = capture_compression(*options);
    write_atomically(*file, to_yaml(trace));
    fmt::print("{}written: {}\n", compression_table(trace), file->string());
  });
}

}  // namespace stepcast
