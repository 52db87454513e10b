#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/network/layer.hpp"

namespace stepcast {

/// One operator or annotation of the host. Operators of a thread nest by time.
struct ProfileOperator {
  int name = 0;               ///< index into Profile::names
  int thread = 0;             ///< index of process and thread
  double start = 0, end = 0;  ///< [us], on the profile's clock
  std::int64_t external_id = -1;
  std::int64_t sequence = -1;        ///< number of the autograd node; -1: none
  std::int64_t forward_thread = -1;  ///< above 0 in nodes of the backward pass
  bool annotation = false;           ///< a range that a program named, such as "ProfilerStep#3"
  int parent = -1;                   ///< index of the operator around it; -1: none
  std::vector<Shape> shapes;         ///< of its inputs, with the batch; empty if they were not recorded
};

/// One kernel, copy or fill on the GPU. In a profile of CPU operators: an operator's time without its parts.
struct ProfileKernel {
  enum class Kind { kernel, copy, fill };
  int name = 0;
  Kind kind{};
  int device = 0;
  double seconds = 0;
  std::int64_t external_id = -1;
  std::int64_t correlation = -1;  ///< joins the kernel to its launch
  int host_operator = -1;         ///< index of the operator, once known
  double launched = -1;           ///< when the host launched it [us]; -1: not known
};

/// The host's call that launched a kernel.
struct ProfileLaunch {
  int name = 0, thread = 0;
  double start = 0;
};

/// The contents of a profile of `torch.profiler` (Kineto JSON) that stepcast reads.
struct Profile {
  std::string file;
  std::vector<std::string> names;  ///< of operators, kernels and launches, each once
  std::vector<ProfileOperator> operators;
  std::vector<ProfileKernel> kernels;
  std::unordered_map<std::int64_t, ProfileLaunch> launches;  ///< by correlation
  std::string device = {};    ///< name of GPU 0; empty if the file does not say
  std::string software = {};  ///< versions that the file holds
  bool cpu_only = false;      ///< no GPU work: the operators' own times are in `kernels`

  const std::string& name(const ProfileOperator& one) const {
    return names[static_cast<std::size_t>(one.name)];
  }
  const std::string& name(const ProfileKernel& one) const {
    return names[static_cast<std::size_t>(one.name)];
  }
};

/// Seconds of the passes of one operator in one step.
struct OperatorTimes {
  double forward = 0, backward_data = 0, backward_weights = 0;
  double halved = 0;  ///< part of both backward passes that was split in equal halves, as no name tells more
  double gradient_sum = 0;  ///< sums of gradients right after its backward pass: its input has other readers
};

/// An outermost operator of the forward pass that has a node in the backward pass.
struct NetworkOperator {
  std::string name;
  std::string kind;           ///< as operator_kind says
  std::vector<Shape> shapes;  ///< of its inputs and parameters, with the batch; empty if not recorded
  OperatorTimes times;
  Shape output = {};  ///< of its first output, with the batch: that of the gradient; empty: not recorded
  int round = 0;      ///< of the forward and backward passes of one step: its micro-batch
  /// Elements of each array whose gradient its backward pass adds to `.grad`, the last one first; -1: not
  /// recorded
  std::vector<std::int64_t> parameters = {};
};

/// Number of elements of a shape as a file gives it; -1 if a size is negative or the product is above 1e15.
std::int64_t recorded_elements(const Shape& shape);

/// GPU work that belongs to no layer.
enum class Share { optimizer, zero_grad, accumulation, input, communication, buckets, other, unknown };
const char* to_string(Share share);

/// One training step: its operators in forward order.
struct ProfileStep {
  std::string name;
  std::vector<NetworkOperator> operators;
  std::map<Share, double> shares;  ///< [s]
  double wall = 0;                 ///< of the host [s]
};

/// Reads a profile, `.json` or `.json.gz`, as a stream: memory grows with the number of operators and
/// kernels, which is limited, and not with the size of the file.
/// @throws InputError if it is damaged, too large, or not a profile
Profile read_profile(const std::string& file);

}  // namespace stepcast
