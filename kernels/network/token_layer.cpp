#include "kernels/network/token_layer.hpp"

#include <algorithm>

namespace stepcast {

void copy_tokens(Backend& backend, std::int64_t batch, const TokenPart& from, const TokenPart& to,
                 const TokenArray& shape) {
  const auto strides = [](const TokenArray& of) {
    const std::int64_t token = of.groups * of.features;
    return std::vector<std::int64_t>{of.tokens * token, token, of.features, 1};
  };
  const auto offset = [](const TokenPart& of, std::int64_t token) {
    return (token * of.array.groups + of.group) * of.array.features + of.first_feature;
  };
  std::size_t source = 0, target = 0;
  std::int64_t read = 0, written = 0;  // of the present runs
  while (source < from.tokens.size() && target < to.tokens.size()) {
    const Rows &out = from.tokens[source], &in = to.tokens[target];
    const std::int64_t count = std::min(out.size() - read, in.size() - written);
    BoxMove box{{batch, count, shape.groups, shape.features}, strides(from.array), strides(to.array)};
    box.from_offset = offset(from, out.first + read);
    box.to_offset = offset(to, in.first + written);
    backend.move(box, from.array.memory, to.array.memory);
    read += count;
    written += count;
    if (read == out.size()) ++source, read = 0;
    if (written == in.size()) ++target, written = 0;
  }
}

TokenBlocks::TokenBlocks(Backend& backend, std::int64_t batch, const TokenExchange& exchange, bool to_all)
    : backend_(backend), batch_(batch), exchange_(exchange), to_all_(to_all) {}

std::int64_t TokenBlocks::own_tokens() const {
  std::int64_t count = 0;
  for (const Rows& run : exchange_.tokens[exchange_.place]) count += run.size();
  return count;
}

std::span<float> TokenBlocks::buffer(std::int64_t features) {
  const std::size_t blocks = to_all_ ? ranks() * ranks() : ranks();
  block_elements_ = batch_ * own_tokens() * features;
  const std::size_t size = blocks * block_elements_;
  if (capacity_ < size) {
    memory_ = backend_.allocate(size);
    capacity_ = size;
  }
  return {memory_.get(), size};
}

float* TokenBlocks::block(int place) const {
  return memory_.get() + (place + 1) % ranks() * block_elements_;
}

float* TokenBlocks::block(int from, int to) const {
  return memory_.get() + (from * ranks() + to) * block_elements_;
}

void TokenBlocks::gather_into(const TokenArray& whole) const {
  const std::int64_t own = own_tokens();
  for (int from = 0; from < ranks(); ++from)
    copy_tokens(backend_, batch_, {{block(from), own, whole.groups, whole.features}, {{0, own}}},
                {whole, tokens_of(from)}, whole);
}

void TokenBlocks::scatter_from(const TokenArray& whole) const {
  const std::int64_t own = own_tokens();
  for (int to = 0; to < ranks(); ++to)
    copy_tokens(backend_, batch_, {whole, tokens_of(to)},
                {{block(to), own, whole.groups, whole.features}, {{0, own}}}, whole);
}

void TokenLayer::connect_backward(const std::vector<Tensor*>& output_gradients,
                                  const std::vector<bool>& wanted) {
  output_gradients_ = output_gradients;
  kernel_->connect_backward(output_gradients, wanted);
}

void TokenLayer::run(Pass pass) {
  kernel_->run(pass);
  if (pass == Pass::backward_weights) return;
  ran_forward_ = pass == Pass::forward;
  ran_backward_ = pass == Pass::backward_data;
}

void TokenLayer::copy_output_gradient(float* to) {
  Backend& backend = blocks_.backend();
  backend.copy_out(*output_gradients_.front(), to);
  for (std::size_t i = 1; i < output_gradients_.size(); ++i) {
    const std::size_t elements = output_gradients_[i]->elements();
    if (scratch_ == nullptr) scratch_ = backend.allocate(elements);
    backend.copy_out(*output_gradients_[i], scratch_.get());
    backend.add(scratch_.get(), to, elements);
  }
}

namespace {

/// TokenExchange::Form::gathered
class GatheredLayer final : public TokenLayer {
 public:
  GatheredLayer(Backend& backend, const LayerSite& site, const TokenExchange& exchange)
      : TokenLayer(backend, site, exchange, false),
        own_input_(*site.inputs.front()),
        features_(own_input_.shape().back()),
        whole_(memory(blocks_.all_tokens(), features_)),
        input_(backend.make_tensor(batched(blocks_.all_tokens(), features_))) {
    LayerSite whole = site;
    whole.inputs.front() = input_.get();
    kernel_ = backend.make_kernel(whole);
  }

  void connect_backward(const std::vector<Tensor*>& output_gradients,
                        const std::vector<bool>& wanted) override {
    if (wanted.front()) gradient_ = blocks_.backend().make_tensor(own_input_.shape());
    TokenLayer::connect_backward(output_gradients, wanted);
  }
  Tensor* input_gradient(std::size_t) override { return gradient_.get(); }

  std::span<float> pack(Pass pass) override {
    const std::span<float> buffer = blocks_.buffer(features_);
    Backend& backend = blocks_.backend();
    if (pass == Pass::forward) {
      backend.copy_out(own_input_, blocks_.block(blocks_.place()));
    } else if (gradient_ != nullptr) {
      backend.copy_out(*kernel_->input_gradient(0), whole_.get());
      blocks_.scatter_from(array());
    }
    return buffer;
  }
  void unpack(Pass pass) override {
    Backend& backend = blocks_.backend();
    if (pass == Pass::forward) {
      blocks_.gather_into(array());
      backend.copy_in(whole_.get(), *input_);
    } else if (gradient_ != nullptr) {
      backend.copy_in(blocks_.block(blocks_.place()), *gradient_);
    }
  }

 private:
  TokenArray array() const { return {whole_.get(), blocks_.all_tokens(), 1, features_}; }

  Tensor& own_input_;
  std::int64_t features_;
  std::shared_ptr<float> whole_;
  std::unique_ptr<Tensor> input_, gradient_;
};

/// TokenExchange::Form::scattered
class ScatteredLayer final : public TokenLayer {
 public:
  ScatteredLayer(Backend& backend, const LayerSite& site, const TokenExchange& exchange)
      : TokenLayer(backend, site, exchange, false), features_(site.layer->output.back()) {
    kernel_ = backend.make_kernel(site);
    kernel_->defer_sums();
    whole_ = memory(blocks_.all_tokens(), features_);
    output_ = backend.make_tensor(batched(blocks_.own_tokens(), features_));
    gradient_ = backend.make_tensor(batched(blocks_.all_tokens(), features_));
  }

  Tensor& output() override { return *output_; }
  void connect_backward(const std::vector<Tensor*>& output_gradients,
                        const std::vector<bool>& wanted) override {
    TokenLayer::connect_backward({gradient_.get()}, wanted);
    output_gradients_ = output_gradients;
  }

  std::span<float> pack(Pass pass) override {
    const std::span<float> buffer = blocks_.buffer(features_);
    if (pass == Pass::forward) {
      kernel_->finish(Pass::forward);  // adds the bias to the partial sums of this rank's tokens
      blocks_.backend().copy_out(kernel_->output(), whole_.get());
      blocks_.scatter_from(array());
    } else {
      copy_output_gradient(blocks_.block(blocks_.place()));
    }
    return buffer;
  }
  void unpack(Pass pass) override {
    Backend& backend = blocks_.backend();
    if (pass == Pass::forward) return backend.copy_in(blocks_.block(blocks_.place()), *output_);
    blocks_.gather_into(array());
    backend.copy_in(whole_.get(), *gradient_);
  }

 private:
  TokenArray array() const { return {whole_.get(), blocks_.all_tokens(), 1, features_}; }

  std::int64_t features_;
  std::shared_ptr<float> whole_;
  std::unique_ptr<Tensor> output_, gradient_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_token_layer(Backend& backend, const LayerSite& site,
                                              const TokenExchange& exchange) {
  if (exchange.form == TokenExchange::Form::gathered)
    return std::make_unique<GatheredLayer>(backend, site, exchange);
  if (exchange.form == TokenExchange::Form::scattered)
    return std::make_unique<ScatteredLayer>(backend, site, exchange);
  return make_token_attention(backend, site, exchange);
}

}  // namespace stepcast
