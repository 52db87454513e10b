#include "strategies/options/finish_plan.hpp"

namespace stepcast {

void finish_plan(const Setting& setting, const TrainingOptions& training, const StepFacts& step, Plan& plan) {
  plan.trace_kind = step.times.kind;
  plan.flags = step.times.flags;
  plan.no_arithmetic = step.no_arithmetic;
  plan.compute_slowdown = training.compute_slowdown;
  plan.load_data = setting.sample_size.value > 0;
  plan.batch_per_worker = step.batch_per_worker;
  plan.samples_a_step = step.samples_a_step;
  plan.memory = step.memory;
  plan.fits = fits(plan.memory, setting.device);
  plan.why_not = why_not(plan.memory, setting.device);
}

MemoryOptions memory_options(const Setting& setting, const TrainingOptions& training, std::int64_t batch) {
  MemoryOptions memory = setting.memory;
  memory.batch = batch;
  memory.bucket_copies = false;
  if (training.mixed) memory.precision = MemoryOptions::Precision::mixed;
  return memory;
}

}  // namespace stepcast
