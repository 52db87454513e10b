#pragma once

#include <vector>

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

}  // namespace stepcast
