#pragma once

#include "check/cases.hpp"
#include "models/network/model.hpp"

namespace stepcast::test {

/// A residual block: the output of `bn1` takes two paths, which meet in `add`.
Model residual_model();

/// Two dense layers and a softmax over two classes.
Model two_layer_model(std::int64_t features);

}  // namespace stepcast::test
