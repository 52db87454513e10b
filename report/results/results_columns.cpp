#include "report/results/results_columns.hpp"

namespace stepcast {

const std::vector<ShownColumn>& default_columns() {
  static const std::vector<ShownColumn> shown{
      {"workers", "workers", Show::as_is},
      {"step_seconds", "step", Show::seconds},
      {"compute_seconds", "compute", Show::seconds},
      {"exposed_communication_seconds", "exposed communication", Show::seconds},
      {"samples_per_second", "throughput", Show::samples_rate},
      {"speedup", "speed-up", Show::ratio},
      {"efficiency", "efficiency", Show::percent},
      {"memory_bytes", "memory", Show::bytes},
      {"fits", "fits", Show::yes_no},
      {"training_hours_with_faults", "training with faults", Show::hours},
      {"useful_share", "of it useful", Show::percent},
      {"best_checkpoint_interval_seconds", "best interval", Show::whole_seconds},
      {"young_checkpoint_interval_seconds", "Young", Show::whole_seconds},
      {"daly_checkpoint_interval_seconds", "Daly", Show::whole_seconds},
      {"makespan_hours", "campaign", Show::hours},
      {"device_utilization", "devices busy", Show::percent},
      {"idle_optimizer_share", "wait for optimizer", Show::percent},
      {"idle_fold_share", "wait for fold", Show::percent},
      {"idle_generation_share", "wait for generation", Show::percent},
      {"idle_tail_share", "nothing left", Show::percent},
      {"bottleneck", "bottleneck", Show::as_is},
  };
  return shown;
}

const std::vector<ShownColumn>& own_columns() {
  static const std::vector<ShownColumn> shown{
      {"updates_per_second", "updates", Show::rate},
      {"tasks_per_second", "tasks", Show::rate},
      {"wasted_tasks_share", "tasks wasted", Show::percent},
      {"vector_share", "vector arithmetic", Show::percent},
      {"master_seconds", "master an update", Show::seconds},
      {"knee_workers", "knee workers", Show::ratio},
      {"server_utilization", "server busy", Show::percent},
      {"sub_master_utilization", "sub-masters busy", Show::percent},
      {"staleness_mean", "staleness mean", Show::ratio},
      {"staleness_p95", "staleness 95 %", Show::ratio},
      {"staleness_max", "staleness most", Show::ratio},
      {"staleness_lead", "ahead most", Show::ratio},
      {"dropped_share", "updates dropped", Show::percent},
      {"overhead", "overhead of a block", Show::percent},
      {"sweep_optimize_minutes", "sweep: optimize", Show::minutes},
      {"sweep_aggregate_minutes", "sweep: aggregate", Show::minutes},
      {"sweep_validate_minutes", "sweep: validate", Show::minutes},
      {"sweep_minutes", "sweep", Show::minutes},
      {"gradient_bytes", "gradient sent", Show::bytes},
      {"quantize_seconds", "quantize", Show::seconds},
      {"restore_seconds", "restore", Show::seconds},
      {"halo_seconds", "wait for halos", Show::seconds},
      {"exchange_seconds", "wait for exchanges", Show::seconds},
      {"statistics_seconds", "wait for statistics", Show::seconds},
      {"idle_share", "devices idle", Show::percent},
      {"data_loading_seconds", "wait for data", Show::seconds},
      {"jitter_seconds", "longer by jitter", Show::seconds},
      {"straggler_seconds", "longer by stragglers", Show::seconds},
      {"campaign_devices", "devices", Show::as_is},
      {"points_per_hour", "points an hour", Show::ratio},
      {"optimizer_utilization", "optimizers busy", Show::percent},
      {"idle_driver_share", "master and optimizers", Show::percent},
      {"lost_to_checkpoints_seconds", "lost to checkpoints", Show::seconds_as_hours},
      {"lost_to_rework_seconds", "lost to rework", Show::seconds_as_hours},
      {"lost_to_restart_seconds", "lost to restart", Show::seconds_as_hours},
      {"lost_to_missing_workers_seconds", "lost to missing workers", Show::seconds_as_hours},
      {"lost_to_slow_workers_seconds", "lost to slow workers", Show::seconds_as_hours},
      {"lost_to_stragglers_seconds", "lost to stragglers", Show::seconds_as_hours},
      {"lost_to_jitter_seconds", "lost to jitter", Show::seconds_as_hours},
  };
  return shown;
}

}  // namespace stepcast
