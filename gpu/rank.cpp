#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>

#include "core/error.hpp"
#include "gpu/commands.hpp"
#include "gpu/rank_options.hpp"
#include "validate/run_options.hpp"

namespace stepcast {
namespace {

/// For the process that watches, which says it once for all ranks.
void leave_word(const RankOptions& options, const char* kind, const std::exception& error) {
  std::ofstream(fmt::format("{}/rank-{}.error", options.folder, options.rank))
      << kind << " " << error.what() << "\n";
}

void run_and_leave_word(const RankOptions& options) {
  try {
    run_gpu_rank(options);
  } catch (const InputError& error) {
    leave_word(options, "input", error);
    throw;
  } catch (const RankLost& error) {
    leave_word(options, "lost", error);
    throw;
  } catch (const std::exception& error) {
    leave_word(options, "fault", error);
    throw;
  }
}

}  // namespace

void add_gpu_rank(CLI::App& app) {
  auto* command =
      app.add_subcommand("rank", "One rank of `run` or of `stepcast validate --device`, which start it");
  auto options = std::make_shared<RankOptions>();
  command->add_option("--rank", options->rank)->required();
  command->add_option("--ranks", options->ranks)->required();
  command->add_option("--store", options->store, "file:FOLDER or tcp:ADDRESS:PORT")->required();
  command->add_option("--folder", options->folder)->required();
  command->add_option("--control", options->control)->required();
  command->add_option("--patience", options->patience, "seconds for other ranks")->capture_default_str();
  add_gpu_words(*command, options->gpus.words, "cuda:NUMBER, of rank 0");
  add_gpu_paths(*command, options->gpus);
  command->add_option("--scenario", options->validation.scenario)->required();
  command->add_option("--set", options->validation.settings)->allow_extra_args(false);
  command->add_option("--repeats", options->validation.repeats);
  command->callback([options] {
    options->validation.accept_disturbed = true;  // nobody measures how a GPU is disturbed
    // Before CUDA is used: a kernel that is loaded at its first launch may wait for those that run, and
    // NCCL's wait for other ranks. Source: CUDA's programming guide, "Lazy loading", on concurrent execution.
    if (options->gpus.path != "host") setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    run_and_leave_word(*options);
  });
}

}  // namespace stepcast
