#pragma once

#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace stepcast {

/// What a training does when a node dies.
enum class Answer {
  restart,  ///< all stop, wait for the node, and go back to the last checkpoint: synchronous training
  shrink,   ///< the others go on without it until it is back: asynchronous and block training
};

struct Checkpoints {
  Seconds interval = {};    ///< of training between two; 0: none are written
  Seconds write = {};       ///< until one is in the store: size / bandwidth
  bool background = false;  ///< written while training goes on; else training stands still
  Seconds snapshot = {};    ///< background: training stands still while the state is copied aside
};

/// Spells in which some workers are slow: a busy host, a hot device, a bad link.
struct SlowSpells {
  double share = 0;   ///< of the workers, in a spell
  double factor = 1;  ///< by which they are slower, >= 1
  Seconds lasts = {};
  Seconds every = {};  ///< mean time from the end of one to the start of the next; 0: they are always slow
};

/// A training and what may happen to it.
struct Faults {
  Seconds training;   ///< without any fault or checkpoint: steps x seconds a step
  int nodes = 1;      ///< that it runs on, or devices, where these die alone; workers are spread evenly
  Seconds node_mtbf;  ///< mean time between failures of one of them, exponential; 0: they never die
  Seconds repair;     ///< until the node, or another one, is there
  Seconds restart;    ///< then until it trains again
  Answer answer = Answer::restart;
  Seconds exchange;  ///< shrink: between two contributions of a worker, which dies with what it has not sent
  Checkpoints checkpoints;
  SlowSpells slow;
  std::uint64_t seed = 1;
};

/// Where the time of a training went: total = training + the five losses. Of several draws, their means.
struct TrainingTime {
  Seconds total;
  Seconds checkpoints;  ///< training stood still for one
  Seconds rework;       ///< done again, because it was lost
  Seconds restart;      ///< repair and restart, all waiting
  Seconds missing;      ///< done later, because workers were away (shrink)
  Seconds slow;         ///< done later, because workers were slow
  double failures = 0;
  bool finished = true;  ///< false: given up, because it hardly gets from one checkpoint to the next
};

/// One draw, event by event. Checkpoints are written after every `interval` of training and at its end (a
/// last one in the background is waited for). With `restart`, a failure loses what came after the last whole
/// checkpoint and one that is being written; nodes also die during repair, checkpoint and restart, and each
/// failure begins repair and restart anew. With `shrink`, a dead node is away for repair + restart and takes
/// its share of a part of `exchange`, drawn evenly, with it; the model survives while one node does, else the
/// last checkpoint is taken. In a spell, synchronous workers all wait for the slow ones (factor); others do
/// not (1 - share (1 - 1 / factor)).
TrainingTime training_time(const Faults& faults, int draw);

/// Means over draws 0 .. draws - 1; `totals` gets the total of each.
TrainingTime mean_training_time(const Faults& faults, int draws, std::vector<double>* totals = nullptr);

}  // namespace stepcast
