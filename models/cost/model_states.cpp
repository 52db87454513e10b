#include <vector>

#include "models/cost/allocator/caching_allocator.hpp"
#include "models/cost/pass_cost.hpp"
#include "models/cost/step_memory.hpp"

namespace stepcast {

double optimizer_copies(MemoryOptions::OptimizerState optimizer) {
  switch (optimizer) {
    case MemoryOptions::OptimizerState::sgd:
      return 0;
    case MemoryOptions::OptimizerState::adam:
    case MemoryOptions::OptimizerState::adamw:
      return 2;
    default:
      return 1;
  }
}

namespace {

/// Sizes [elements] of the parameters that a layer trains.
std::vector<double> trained(const Layer& layer) {
  std::vector<double> sizes;
  for (const ParameterTensor& tensor : layer.parameters)
    if (tensor.trainable) sizes.push_back(tensor.elements());
  return sizes;
}

}  // namespace

ModelStates::ModelStates(const Model& model, const MemoryOptions& options, CachingAllocator& allocator)
    : model_(model),
      options_(options),
      allocator_(allocator),
      counts_(options.framework == MemoryOptions::Framework::pytorch &&
              options.zero == MemoryOptions::Zero::none && !options.half_parameters),
      gradients_(model.layers.size()),
      casts_(model.layers.size()) {
  for (const Layer& layer : model.layers)
    for (const ParameterTensor& tensor : layer.parameters) allocate(kFp32Bytes * tensor.elements());
}

CachingAllocator::Block ModelStates::allocate(double bytes) {
  if (!counts_) return CachingAllocator::kNoBlock;
  bytes_ += allocated_block({bytes});
  return allocator_.allocate({bytes});
}

void ModelStates::free(Block block, double bytes) {
  if (block == CachingAllocator::kNoBlock) return;
  bytes_ = bytes_ - allocated_block({bytes});
  allocator_.free(block);
}

void ModelStates::run_forward(std::size_t layer) {
  if (!autocast(options_) || !computes_in_half(model_.layers[layer].kind)) return;
  for (const double size : trained(model_.layers[layer]))
    casts_[layer].push_back(allocate(kHalfBytes * size));
}

void ModelStates::run_backward(std::size_t layer) {
  const std::vector<double> sizes = trained(model_.layers[layer]);
  for (const double size : sizes) {
    const double narrow = casts_[layer].empty() ? 0 : kHalfBytes * size;  // the gradient of the cast
    const Block before = allocate(narrow);
    gradients_[layer].push_back(allocate(kFp32Bytes * size));
    free(before, narrow);
  }
  for (std::size_t i = 0; i < casts_[layer].size(); ++i) free(casts_[layer][i], kHalfBytes * sizes[i]);
  casts_[layer].clear();
}

void ModelStates::end_step() {
  const auto copies = has_state_ ? 0 : static_cast<int>(optimizer_copies(options_.optimizer));
  has_state_ = true;
  for (const Layer& layer : model_.layers)
    for (const double size : trained(layer))
      for (int copy = 0; copy < copies; ++copy) allocate(kFp32Bytes * size);
  for (std::size_t layer = 0; layer < gradients_.size(); ++layer) {
    const std::vector<double> sizes = trained(model_.layers[layer]);
    for (std::size_t i = 0; i < gradients_[layer].size(); ++i)
      free(gradients_[layer][i], kFp32Bytes * sizes[i]);
    gradients_[layer].clear();
  }
}

}  // namespace stepcast
