#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/layer_times/trace.hpp"
#include "models/network/layer.hpp"
#include "models/network/model.hpp"

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
  int shapes = 0;                    ///< index into Profile::shapes: of its inputs, with the batch
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
  bool in_graph = false;          ///< launched with a CUDA graph
};

/// The host's call that launched a kernel, or another call of the runtime.
struct ProfileLaunch {
  std::int64_t correlation = -1;
  int name = 0, thread = 0;
  double start = 0, length = 0;  ///< [us]
};

/// The contents of a profile of `torch.profiler` (Kineto JSON) that stepcast reads.
struct Profile {
  std::string file;
  std::vector<std::string> names;  ///< of operators, kernels and launches, each once
  std::vector<ProfileOperator> operators;
  std::vector<ProfileKernel> kernels;
  std::vector<ProfileLaunch> launches;  ///< sorted by correlation
  /// Each list of shapes once; the first is empty: they were not recorded.
  std::vector<std::vector<Shape>> shapes = {{}};
  std::string device = {};               ///< name of GPU 0; empty if the file does not say
  std::string software = {};             ///< versions that the file holds
  std::vector<std::string> groups = {};  ///< of processes, such as "mesh_tp of 4 ranks" (distributedInfo)
  bool cpu_only = false;                 ///< no GPU work: the operators' own times are in `kernels`

  const std::string& name(const ProfileOperator& one) const { return names[one.name]; }
  const std::string& name(const ProfileKernel& one) const { return names[one.name]; }
  const std::vector<Shape>& shapes_of(const ProfileOperator& one) const { return shapes[one.shapes]; }
};

/// Seconds of the passes of one operator in one step.
struct OperatorTimes {
  double forward = 0, backward_data = 0, backward_weights = 0;
  double halved = 0;  ///< part of both backward passes that was split in equal halves, as no name tells more
  double gradient_sum = 0;  ///< sums of gradients right after its backward pass: its input has other readers
  double host_forward = 0,
         host_backward = 0;  ///< of the host, from the operator to the next one, without waits
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
  bool region = false;  ///< several layers in one: compiled, or a CUDA graph
};

/// Number of elements of a shape as a file gives it; -1 if a size is negative or the product is above 1e15.
std::int64_t recorded_elements(const Shape& shape);

/// GPU work that belongs to no layer.
enum class NonLayerWork {
  optimizer,
  zero_grad,
  accumulation,
  input,
  communication,
  buckets,
  sharding,
  recomputed,
  other,
  unknown
};
const char* to_string(NonLayerWork work);

/// One training step: its operators in forward order.
struct ProfileStep {
  std::string name;
  std::vector<NetworkOperator> operators;
  std::map<NonLayerWork, double> non_layer_seconds;  ///< [s]
  std::map<std::string, double> left_out;            ///< [s] in no layer and no update, by operator
  double wall = 0;                                   ///< of the host [s]
  double host_update = 0;                            ///< of the host in the optimizer's step [s]
};

/// Reads a profile, `.json` or `.json.gz`, as a stream: memory grows with the number of operators and
/// kernels and with distinct names and shapes, which all are limited, and not with the size of the file.
/// @throws InputError if it is damaged, too large, or not a profile
Profile read_profile(const std::string& file);

/// The GPU's time of every step, given to operators of the forward pass.
struct Attribution {
  std::vector<ProfileStep> steps;
  double gpu_seconds = 0;      ///< of all steps
  double unknown_seconds = 0;  ///< that no rule could place
  double halved_seconds = 0;
  bool foreach_optimizer = false;
  std::map<std::string, int> collectives;  ///< outside the passes, by kind; of all steps
  int micro_batches = 1;                   ///< whose gradients a step sums; each of them is a step here
  std::string precision;                   ///< of most of the products' time
  std::string dropped;                     ///< steps that were left out, and why; empty: none

  /// "3.5 % (aten::copy_ 3.1 %, aten::item 0.4 %)": what is in no layer and no update, by its share of the
  /// GPU's time; "nothing".
  std::string left_out_text() const;
  double attributed() const { return gpu_seconds > 0 ? 1 - unknown_seconds / gpu_seconds : 0; }
};

/// Gives each kernel to a step (by the time of its launch), an operator, and a pass.
/// Steps of one profile have the same operators in the same order.
/// @throws InputError one line: no steps, no backward pass, several GPUs, a CUDA graph of no operator,
/// activations that are computed again in an unknown way, or under 98 % of the GPU's time placed
Attribution attribute(const Profile& profile);

/// For each layer of a model, the indices of its operators. Layers that do no work have none.
using LayerMatch = std::vector<std::vector<int>>;

struct MatchedModel {
  const Model& model;
  const LayerMatch& match;
};

/// Finds an order of the model's layers, each after its inputs, whose kinds and (where recorded) shapes are
/// those of the operators. A program may run branches in another order than the model's file lists them.
/// Where several orders fit, one that goes on along a branch is preferred to one that jumps.
/// @param batch  samples of a step; 0: not known, no shapes are compared
/// @throws InputError one line that names the first operator that no order places, or one of several layers
LayerMatch match_layers(const std::string& file, const std::vector<NetworkOperator>& operators,
                        const Model& model, std::int64_t batch);

/// The batch that the shapes tell; 0 if there are none.
std::int64_t recorded_batch(const std::vector<NetworkOperator>& operators);

/// The trace of a profile: every step of the profile is a sample of every layer and pass. The optimizer's
/// time is divided in proportion to the parameters; sums of gradients go to the layer whose output has
/// several readers, as in derived traces. The trace's flags say what is approximate.
/// @param ordinary_step  [s] of a step without the profiler, which slows the host: the host's times are
/// scaled
///                       by it / the profiled step's; 0: not known, and the trace has no host's times
Trace profile_trace(const Profile& profile, const Attribution& attribution, const MatchedModel& network,
                    std::int64_t batch, double ordinary_step = 0);

/// Seconds of a step of the profile on the host, and those in which the host issued layers and the update.
struct ProfiledHost {
  double wall = 0, issuing = 0;
};
ProfiledHost profiled_host(const Attribution& attribution);

/// A network that is known only from the operators of a profile.
struct ProfileNetwork {
  std::string text;  ///< of its network file
  Model model;       ///< what `text` says
  LayerMatch match;  ///< for each layer, its operator; none for a layer that only changes the shape
  int measured = 0;  ///< layers of kind `measured`
  std::string fault =
      {};  ///< why stepcast cannot read `text`, which is a fault of this function; empty: it can
};

/// Writes the network of a profile: its operators in forward order. An operator whose shapes define it
/// completely becomes a layer of its kind; any other operator becomes a layer of kind `measured`. A profile
/// does not say which outputs an operator reads. A layer reads the output of the layer above if its size
/// fits; otherwise an output that fits and whose gradient was a sum; otherwise the latest output that fits.
/// Without shapes, all layers are `measured` and each output is one number per sample.
/// @param name        name of the network
/// @param parameters  elements of the trained arrays in forward order, for a profile without shapes; or empty
/// @throws InputError in one line: the sizes of parameters are not known, or do not fit
ProfileNetwork profile_network(const std::string& file, std::vector<NetworkOperator> operators,
                               std::int64_t batch, const std::string& name,
                               const std::vector<std::int64_t>& parameters);

}  // namespace stepcast
