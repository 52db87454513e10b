#pragma once

#include "check/cases.hpp"
#include "kernels/network/network.hpp"
#include "models/network/model.hpp"

namespace stepcast::test {

/// A residual block: the output of `bn1` takes two paths, which meet in `add`.
Model residual_model();

/// Two dense layers and a softmax over two classes.
Model two_layer_model(std::int64_t features);

/// Trains two_layer_model(4) on the side of a plane on which a sample lies; checks that the loss comes near
/// 0.
void check_learns_plane(Backend& backend, const Optimizer& optimizer);

}  // namespace stepcast::test
