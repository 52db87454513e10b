#pragma once

#include "cases.hpp"
#include "models/model.hpp"

namespace stepcast::test {

/// A residual block: the output of `bn1` goes two ways and comes together in `add`.
Model residual_model();

/// Two dense layers and a softmax over two classes.
Model two_layer_model(std::int64_t features);

}  // namespace stepcast::test
