#pragma once

#include <functional>
#include <memory>
#include <string>

#include "strategies/plan.hpp"
#include "validate/carry.hpp"
#include "validate/communication_thread.hpp"
#include "validate/completions.hpp"
#include "validate/control.hpp"
#include "validate/leisure.hpp"
#include "validate/parcels.hpp"
#include "validate/rank_device.hpp"
#include "validate/real_collectives.hpp"
#include "validate/real_mail.hpp"

namespace stepcast {

/// What a worker of a real run works with; all of it outlives the worker.
struct RealWorld {
  const Plan& plan;
  Transport& transport;         ///< of collectives
  CommunicationThread& thread;  ///< that plays them
  RealMail& mail;
  RankDevice& device;
  RealCollectives& collectives;
  Completions& completions;
  RankState& state;
  Leisure* leisure = nullptr;  ///< of the core; null: nobody asks
  double delay = 0;            ///< of this rank's program after the start of the run [s]
  std::function<void(float*, std::int64_t)> library_all_reduce = {};  ///< over all ranks: `all_reduce: mpi`
  /// In place of the transport, for what lies in a device's memory; empty: there is nobody to carry it.
  Carry carry = {};
  /// Of messages whose payload lies in a device's memory; null: they go by mail as all others.
  Parcels* parcels = nullptr;
  std::function<void(double seconds)> step_ended = {};  ///< of this rank's program, so long after its begin
};

/// What a rank did in one run of its program; dates of CLOCK_MONOTONIC, which all ranks of a machine share
/// [s].
struct RealRun {
  double begin = 0;
  std::vector<double> step_ends;
  std::vector<double> compute_seconds;  ///< of each step
  WorkTime worked;                      ///< of the whole run
  Records records;
};

/// Runs this rank's program of the plan. All ranks call it at about the same time with the same number `run`,
/// greater each time. Programs of roles that do not train end when all that train have.
/// @throws what the program threw
RealRun run_program(RealWorld& world, int run);

}  // namespace stepcast
