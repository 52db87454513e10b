#pragma once

#include <map>
#include <vector>

#include "gpu/nccl_link.hpp"
#include "validate/run_program.hpp"
#include "validate/store.hpp"

namespace stepcast {

/// The groups of NCCL that a rank is in, each joined once, and the collectives of plans on them.
class NcclCarrier {
 public:
  /// @param end  number and size are filled in for each group. What is referred to outlives this
  NcclCarrier(Store& store, NcclEnd end) : store_(store), end_(end) {}

  /// Joins the groups of a plan, which outlives what is returned; all ranks call it with the same plans in
  /// the same order.
  Carry carry(const Plan& plan);
  /// This rank's end of a link for messages; returns when the other end is there. Any thread may ask.
  std::unique_ptr<DeviceLink> link(int from, int to);
  /// Of these ranks of the run, this one included; in the order of the library's numbers.
  NcclGroup& group_of(const std::vector<int>& ranks);

 private:
  Store& store_;
  NcclEnd end_;
  std::map<std::vector<int>, std::unique_ptr<NcclGroup>> groups_;
};

}  // namespace stepcast
