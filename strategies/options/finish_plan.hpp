#pragma once

#include <string>

#include "strategies/options/training_options.hpp"

namespace stepcast {

/// Facts about a training step that every plan states, whatever the strategy.
struct StepFacts {
  TimesSource times;
  std::int64_t batch_per_worker = 1;  ///< samples a step of one replica
  double samples_a_step = 1;          ///< samples a step of all replicas
  Memory memory;                      ///< memory of the fullest device
  std::string no_arithmetic;          ///< key of an option whose values are not calculated; empty: none
};

/// The last step of every plan: writes the facts into it, and whether the memory fits the device.
void finish_plan(const Setting& setting, const TrainingOptions& training, const StepFacts& step, Plan& plan);

/// Memory options of a device that works on `batch` samples at once.
MemoryOptions memory_options(const Setting& setting, const TrainingOptions& training, std::int64_t batch);

}  // namespace stepcast
