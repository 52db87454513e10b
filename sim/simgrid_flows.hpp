#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/callback.hpp"

namespace stepcast {

/// SimGrid, as far as it is used: links, flows that share them max-min fairly, a clock and timers. One a
/// process: SimGrid 3.32 keeps its clock and configuration from one engine to the next.
class SimGridFlows {
 public:
  /// @param ended  called for every flow with what is to be done when it is
  SimGridFlows(const std::vector<double>& bandwidths, std::function<void(Callback&)> ended);
  ~SimGridFlows();
  SimGridFlows(const SimGridFlows&) = delete;
  SimGridFlows& operator=(const SimGridFlows&) = delete;

  double clock() const;
  std::int64_t under_way() const { return under_way_; }  ///< flows
  /// @param size  whole, in the unit of the bandwidths
  void start(const std::vector<int>& links, double size, Callback done);
  /// A timer is never removed (SimGrid 3.32 crashes on one that fired); of equal dates they fire in no useful
  /// order.
  void at(double date, std::function<void()> callback);
  void run();  ///< until nothing is left to happen

 private:
  struct Parts;

  std::unique_ptr<Parts> parts_;
  std::int64_t under_way_ = 0;
};

}  // namespace stepcast
