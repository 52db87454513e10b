#pragma once

#include <memory>

#include "data/dataset.hpp"

namespace stepcast {

/// Samples to train on, and held-out samples to evaluate on.
struct TrainAndTest {
  std::unique_ptr<Dataset> train, test;
};

/// Opens files or sets up generators.
/// @throws InputError for a form that the kind does not have, and for invalid files
TrainAndTest make_data(const DataOptions& options, const SampleForm& form);

}  // namespace stepcast
