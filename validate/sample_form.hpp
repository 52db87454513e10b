#pragma once

#include "data/dataset.hpp"
#include "models/model.hpp"

namespace stepcast {

/// What a network with one loss learns from. @throws InputError for one with none or several
struct LearningTask {
  std::size_t loss_layer = 0;
  SampleForm form;
};

LearningTask learning_task(const Model& model);

}  // namespace stepcast
