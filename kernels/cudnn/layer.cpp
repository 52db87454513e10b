#include "kernels/cudnn/layer.hpp"

#include "kernels/cudnn/elements.hpp"

namespace stepcast::cudnn {
CudnnLayer::CudnnLayer(std::shared_ptr<Device> device, const LayerSite& site)
    : device_(std::move(device)), site_(site), layer_(*site.layer) {
  for (Tensor* input : site.inputs) inputs_.push_back(&dynamic_cast<CudnnTensor&>(*input));
  input_gradients_.resize(inputs_.size());
}

void CudnnLayer::connect_backward(const std::vector<Tensor*>& output_gradients,
                                  const std::vector<bool>& wanted) {
  for (Tensor* gradient : output_gradients) {
    output_gradients_.push_back(dynamic_cast<CudnnTensor&>(*gradient));  // a handle of the same memory
  }
  wanted_ = wanted;
  connect();
}

Tensor* CudnnLayer::input_gradient(std::size_t input) {
  return input_gradients_.at(input).get();
}

bool CudnnLayer::has(Pass pass) const {
  switch (pass) {
    case Pass::forward:
      return !forward_.empty();
    case Pass::backward_data:
      return !backward_data_.empty();
    case Pass::backward_weights:
      return !backward_weights_.empty();
    case Pass::update:
      break;
  }
  return false;
}

void CudnnLayer::run(Pass pass) {
  const Steps& steps = pass == Pass::forward         ? forward_
                       : pass == Pass::backward_data ? backward_data_
                                                     : backward_weights_;
  for (const auto& step : steps) step();
}

Shape CudnnLayer::batched(const Shape& sample) const {
  Shape dims{batch()};
  dims.insert(dims.end(), sample.begin(), sample.end());
  return dims;
}

Order CudnnLayer::image_order(const Shape& shape) const {
  const bool image = shape.size() == 4;
  return image && device_->options.layout == ImageLayout::nhwc ? Order::channels_last : Order::row_major;
}

Order CudnnLayer::input_order() const {
  return input().order();
}

const CudnnTensor& CudnnLayer::make_output(const Shape& shape, Order order) {
  output_ = CudnnTensor(device_, shape, element(), order);
  return output_;
}

const CudnnTensor& CudnnLayer::make_input_gradient(const Shape& shape, Order order, std::size_t input) {
  input_gradients_.at(input) = std::make_unique<CudnnTensor>(device_, shape, element(), order);
  return *input_gradients_.at(input);
}

void CudnnLayer::pass_gradient_on(const CudnnTensor& gradient, std::size_t input) {
  input_gradients_.at(input) = std::make_unique<CudnnTensor>(gradient);
}

CudnnTensor CudnnLayer::output_gradient(Steps& steps, Order order) {
  if (output_gradients_.size() == 1) return arranged(steps, output_gradients_[0], order);
  if (joined_) return arranged(steps, *joined_, order);
  joined_ = std::make_unique<CudnnTensor>(scratch(output_.shape(), order));
  std::vector<const void*> terms;
  for (const CudnnTensor& gradient : output_gradients_) {
    terms.push_back(arranged(steps, gradient, order).data());
  }
  steps.emplace_back([this, terms, to = joined_->data(), n = static_cast<std::int64_t>(joined_->elements())] {
    sum(terms, to, element(), n, stream());
  });
  return *joined_;
}

CudnnTensor CudnnLayer::arranged(Steps& steps, const CudnnTensor& tensor, Order order) {
  if (tensor.element() == element() && tensor.lies_as(order)) return tensor;
  for (const Arranged& done : arranged_) {
    if (done.from == tensor.data() && done.to.shape() == tensor.shape() && done.to.lies_as(order)) {
      return done.to;
    }
  }
  const CudnnTensor to = scratch(tensor.shape(), order);
  arranged_.push_back({tensor.data(), to});
  steps.emplace_back([this, tensor, to, move = move_between(tensor, to)] {
    move_elements(move, tensor.data(), to.data(), stream());
  });
  return to;
}

CudnnTensor CudnnLayer::scratch(const Shape& shape, Order order) const {
  return {device_, shape, element(), order};
}

CudnnTensor CudnnLayer::float_scratch(const Shape& shape) const {
  return {device_, shape, Element::f32};
}

void CudnnLayer::note(const std::string& text) {
  notes_ += notes_.empty() ? text : "; " + text;
}

}  // namespace stepcast::cudnn
