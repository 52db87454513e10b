#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/network/backend.hpp"

namespace stepcast {

/// The calls that make up a pass, in order.
using Steps = std::vector<std::function<void()>>;

/// A layer whose passes are lists of calls. Each kind of layer fills `forward_` in its constructor and the
/// other two in `connect`; this class holds what does not depend on the library.
class ListedPasses : public LayerKernel {
 public:
  explicit ListedPasses(const LayerSite& site) : site_(site), layer_(*site.layer) {}

  bool has(Pass pass) const override { return pass != Pass::update && !steps_of(pass).empty(); }

  void run(Pass pass) override {
    for (const auto& step : steps_of(pass)) step();
  }

  Tensor* targets() override { return nullptr; }
  double loss() const override { return 0; }

 protected:
  /// Builds the backward passes; `wanted` and the output's gradients are known.
  virtual void connect() = 0;

  const Layer& layer() const { return layer_; }
  const LayerSite& site() const { return site_; }
  std::int64_t batch() const { return site_.batch; }
  /// The shape {batch, sample...}.
  Shape batched(const Shape& sample) const { return stepcast::batched(site_.batch, sample); }
  /// True if the gradient of an input is needed.
  bool wanted(std::size_t input = 0) const { return wanted_.at(input); }

  /// Index of the parameter with this name in the model, or -1.
  int find_parameter(const std::string& name) const {
    for (std::size_t i = 0; i < layer_.parameters.size(); ++i) {
      if (layer_.parameters[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  Steps forward_, backward_data_, backward_weights_;
  std::vector<bool> wanted_;

 private:
  const Steps& steps_of(Pass pass) const {
    return pass == Pass::forward         ? forward_
           : pass == Pass::backward_data ? backward_data_
                                         : backward_weights_;
  }

  LayerSite site_;
  Layer layer_;
};

}  // namespace stepcast
