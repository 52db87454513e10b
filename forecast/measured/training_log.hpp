#pragma once

#include <string>

#include "report/results/results.hpp"

namespace stepcast {

/// A file of measured runs, as a command line names it: FILE, or WORKERS=FILE for a log that does not say how
/// many workers it is of.
struct RunFile {
  std::string workers, file;
};
RunFile parse_run_file(const std::string& text);

/// The runs of a file: a CSV file with columns as in results.csv, or the log of a trainer, of which each
/// printed step is a row with `workers` and a column that follows from the time of a step. The first tenth of
/// a log's steps, but at least one, is left out. Trainers: Megatron-LM (`elapsed time per iteration (ms)`),
/// torchtitan (`tps`, of a device), DeepSpeed (`CurrSamplesPerSec`, of all devices), PyTorch's ImageNet
/// example (`Time`), Lightning's progress bar (`it/s`, `s/it`), Horovod's synthetic benchmarks (`img/sec per
/// GPU`).
/// @throws InputError if a log names no workers and `workers` is empty, or for an invalid CSV file
Results read_runs(const RunFile& file);

/// Runs and the file that they are from.
struct MeasuredRuns {
  std::string file;
  Results runs;
};

}  // namespace stepcast
