#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Order of Sandblaster's coordinator to a replica.
struct Order {
  enum class Kind { compute, read, send, wait, stop };

  Kind kind = Kind::wait;
  int batch = 0;
  int task = -1;         ///< task of an order of kind compute
  bool counted = false;  ///< the task that the replica computed last counts; it adds its gradient to the sum
};

/// Hands out the tasks of a batch. When none is left, it hands out copies of those that are not finished. It
/// handles no data.
///
/// A replica reads the parameters once a batch, computes tasks, and sends its accrued gradients after every
/// `send_every` of them and when no task is left. If a task has several copies, the first result counts.
class WorkQueue {
 public:
  struct Options {
    int replicas = 1;
    int tasks = 1;  ///< tasks of a batch
    int send_every = 1;
    bool backup_tasks = false;
  };

  explicit WorkQueue(const Options& options);

  void begin_batch();
  /// The replica has carried out its last order.
  void done(int replica);
  Order next(int replica);
  /// All tasks are finished, and their gradients are sent.
  bool batch_done() const { return finished_ == options_.tasks && unsent_ == 0; }
  int tasks() const { return options_.tasks; }
  int wasted() const { return wasted_; }  ///< results that came second or after their batch

 private:
  struct Replica {
    int batch = -1;        ///< batch whose parameters it has read
    int accrued = 0;       ///< finished tasks whose gradients it has not sent
    int given_batch = -1;  ///< batch of its last order
    bool counted = false;  ///< its last result counts
    Order order;
  };

  int open_task();

  Options options_;
  std::vector<Replica> replicas_;
  std::vector<int> copies_;  ///< copies handed out, for each task
  std::vector<bool> done_;
  int batch_ = -1, given_ = 0, finished_ = 0, unsent_ = 0, wasted_ = 0;
  int copied_ = 0;  ///< tasks before this index have a second copy or are finished
};

// L-BFGS on vectors that are sharded over servers. After each batch, the coordinator sends all servers the
// same commands: one number each. A server answers with its part of a dot product. From its own copy of the
// order of operations, it knows what a command means, so a command needs no name:
//
//   1. slope: gradient x direction at the trial point
//   2. whether the coordinator accepts the trial point; the step from the last point becomes part of the
//   history
//   3. the change of the gradient becomes part of the history
//   4. the two loops over the history: a dot product and a sum for each pair, with a scaling between them
//   5. slope of the new direction
//   6. the next trial point
//
// If the trial point is rejected, only 1 and 6 have work. Commands without work are sent nevertheless: a
// batch takes the time of a full history, so that a forecast does not depend on values.
//
// Sources: J. Dean et al., NIPS 2012, section 4.2; J. Nocedal, S. Wright, "Numerical Optimization", 2nd
// edition, algorithms 7.4 and 7.5.

/// The coordinator's decision on a trial point of the line search.
enum class StepAcceptance {
  rejected,          ///< another length is tried along the same direction
  accepted,          ///< the next direction starts here
  accepted_no_pair,  ///< the same, but the last step does not become part of the history
};

/// The operation that a server does on a command.
struct VectorOperation {
  enum class Kind {
    none,
    slope,
    step_difference,
    gradient_difference,
    step_dot,         ///< first loop: s_i q
    subtract_change,  ///< first loop: q += number y_i
    scale,            ///< q *= number
    change_dot,       ///< second loop: y_i q
    add_step,         ///< second loop: q += number s_i
    new_slope,        ///< the direction becomes q
    move,             ///< the trial point becomes the last point + number x direction
  };
  Kind kind = Kind::none;
  std::size_t pair = 0;  ///< i: index in the history, oldest first
};

/// The operation of a command. @param command  from 0 to lbfgs_operations(most) - 1
/// @param most   pairs that are kept
/// @param pairs  pairs in the history, with the new one
VectorOperation vector_operation(int command, int most, std::size_t pairs, StepAcceptance acceptance);

/// The numbers that the coordinator keeps and sends.
class LbfgsCoordinator {
 public:
  /// @param most          pairs that are kept
  /// @param first_length  of the first step, in units of the gradient
  LbfgsCoordinator(int most, double first_length) : most_(most), first_length_(first_length) {}

  /// The number of a command, from 0 on in every batch.
  double number(int command) const;
  /// @param sum  of the answers of all servers
  void answered(int command, double sum);

  const LineSearch& search() const { return search_; }

 private:
  struct Pair {
    double curvature = 0;  ///< s y
    double alpha = 0;      ///< of the first loop
    double beta = 0;       ///< of the second loop
  };

  VectorOperation operation(int command) const;
  void accept_or_reject(double slope);

  int most_;
  double first_length_;
  bool started_ = false;
  StepAcceptance acceptance_ = StepAcceptance::rejected;
  LineSearch search_;
  double change_squared_ = 1;  ///< y y of the newest pair
  std::deque<Pair> pairs_;
};

/// A server's part of all vectors. The trial point is Array::parameters, the sum of gradients at it
/// Array::gradients, the last point Array::center, the gradient there Array::model, the direction
/// Array::change, and q Array::update.
class LbfgsShard {
 public:
  /// @param most   pairs that are kept
  /// @param tasks  gradients in the sum
  LbfgsShard(int most, int tasks, Slice elements) : most_(most), tasks_(tasks), elements_(elements) {}

  /// Carries out the next command. @returns the part of a dot product; 0 if the operation is none
  double carry_out(Arrays& arrays, double number);

 private:
  double differences(Arrays& arrays, VectorOperation::Kind kind);
  double loop_operation(Arrays& arrays, const VectorOperation& operation, double number);

  int most_, tasks_;
  Slice elements_;
  int command_ = 0;  ///< of the batch
  StepAcceptance acceptance_ = StepAcceptance::rejected;
  LbfgsHistory history_;
};

}  // namespace stepcast
