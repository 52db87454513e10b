
#include "kernels/network/token_layer.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kParts = 3;  // of attention's input: queries, keys, values

/// TokenExchange::Form::heads. The exchange before a pass gives a rank all tokens of its heads; the exchange
/// after it gives back all heads of its tokens.
class HeadsAttention final : public TokenLayer {
 public:
  HeadsAttention(Backend& backend, const LayerSite& site, const TokenExchange& exchange)
      : TokenLayer(backend, site, exchange, true),
        own_input_(*site.inputs.front()),
        width_(site.layer->output.back()),
        own_(memory(blocks_.own_tokens(), kParts * width_ * blocks_.ranks())),
        whole_(memory(blocks_.all_tokens(), kParts * width_)),
        input_(backend.make_tensor(batched(blocks_.all_tokens(), kParts * width_))),
        output_(backend.make_tensor(batched(blocks_.own_tokens(), width_ * blocks_.ranks()))),
        output_gradient_(backend.make_tensor(batched(blocks_.all_tokens(), width_))) {
    LayerSite whole = site;
    whole.inputs.front() = input_.get();
    kernel_ = backend.make_kernel(whole);
  }

  Tensor& output() override { return *output_; }
  void connect_backward(const std::vector<Tensor*>& output_gradients,
                        const std::vector<bool>& wanted) override {
    TokenLayer::connect_backward({output_gradient_.get()}, wanted);
    output_gradients_ = output_gradients;
    if (wanted.front()) input_gradient_ = blocks_.backend().make_tensor(own_input_.shape());
  }
  Tensor* input_gradient(std::size_t) override { return input_gradient_.get(); }

  std::span<float> pack(Pass pass) override {
    before_ = pass == Pass::forward ? !ran_forward_ : !ran_backward_;
    groups_ = (pass == Pass::forward) == before_ ? kParts : 1;
    const std::span<float> buffer = blocks_.buffer(groups_ * width_);
    Backend& backend = blocks_.backend();
    if (pass == Pass::backward_data && input_gradient_ == nullptr) return buffer;
    if (before_) {
      pass == Pass::forward ? backend.copy_out(own_input_, own_.get()) : copy_output_gradient(own_.get());
      for (int to = 0; to < blocks_.ranks(); ++to)
        copy_tokens(backend, blocks_.batch(), heads_of(to), block(blocks_.place(), to), whole());
    } else {
      const Tensor& computed = pass == Pass::forward ? kernel_->output() : *kernel_->input_gradient(0);
      backend.copy_out(computed, whole_.get());
      for (int to = 0; to < blocks_.ranks(); ++to)
        copy_tokens(backend, blocks_.batch(), {whole(), blocks_.tokens_of(to)}, block(blocks_.place(), to),
                    whole());
    }
    return buffer;
  }

  void unpack(Pass pass) override {
    Backend& backend = blocks_.backend();
    if (pass == Pass::backward_data && input_gradient_ == nullptr) return;
    for (int from = 0; from < blocks_.ranks(); ++from)
      copy_tokens(backend, blocks_.batch(), block(from, blocks_.place()),
                  before_ ? TokenPart{whole(), blocks_.tokens_of(from)} : heads_of(from), whole());
    if (before_) return backend.copy_in(whole_.get(), pass == Pass::forward ? *input_ : *output_gradient_);
    backend.copy_in(own_.get(), pass == Pass::forward ? *output_ : *input_gradient_);
    ran_forward_ = ran_backward_ = false;
  }

 private:
  /// All tokens, of this rank's heads.
  TokenArray whole() const { return {whole_.get(), blocks_.all_tokens(), groups_, width_}; }
  /// This rank's tokens, of the heads of a rank.
  TokenPart heads_of(int place) const {
    return {{own_.get(), blocks_.own_tokens(), groups_, width_ * blocks_.ranks()},
            {{0, blocks_.own_tokens()}},
            place * width_};
  }
  TokenPart block(int from, int to) const {
    return {{blocks_.block(from, to), blocks_.own_tokens(), groups_, width_}, {{0, blocks_.own_tokens()}}};
  }

  Tensor& own_input_;
  std::int64_t width_;       ///< features of this rank's heads
  std::int64_t groups_ = 1;  ///< of the arrays of the last exchange
  bool before_ = true;       ///< whether that was before a pass
  std::shared_ptr<float> own_, whole_;
  std::unique_ptr<Tensor> input_, output_, output_gradient_, input_gradient_;
};

/// TokenExchange::Form::keys. The kernel reads the keys and values of all tokens as its second input.
class KeysAttention final : public TokenLayer {
 public:
  KeysAttention(Backend& backend, const LayerSite& site, const TokenExchange& exchange)
      : TokenLayer(backend, site, exchange, false),
        own_input_(*site.inputs.front()),
        width_(site.layer->output.back()),
        own_(memory(blocks_.own_tokens(), kParts * width_)),
        whole_(memory(blocks_.all_tokens(), kKeysAndValues * width_)),
        keys_(backend.make_tensor(batched(blocks_.all_tokens(), kKeysAndValues * width_))) {
    LayerSite gathered = site;
    gathered.inputs.push_back(keys_.get());
    kernel_ = backend.make_kernel(gathered);
  }

  void connect_backward(const std::vector<Tensor*>& output_gradients,
                        const std::vector<bool>& wanted) override {
    TokenLayer::connect_backward(output_gradients, {wanted.front(), wanted.front()});
  }

  std::span<float> pack(Pass pass) override {
    const std::span<float> buffer = blocks_.buffer(kKeysAndValues * width_);
    Backend& backend = blocks_.backend();
    gathers_ = pass == Pass::forward || !ran_backward_;
    if (gathers_) {
      backend.copy_out(own_input_, own_.get());
      copy_tokens(backend, blocks_.batch(), own_keys(), own_block(), whole());
    } else if (kernel_->input_gradient(1) != nullptr) {
      backend.copy_out(*kernel_->input_gradient(1), whole_.get());
      blocks_.scatter_from(whole());
    }
    return buffer;
  }

  void unpack(Pass) override {
    Backend& backend = blocks_.backend();
    if (gathers_) {
      blocks_.gather_into(whole());
      return backend.copy_in(whole_.get(), *keys_);
    }
    if (kernel_->input_gradient(0) == nullptr) return;
    backend.copy_out(*kernel_->input_gradient(0), own_.get());  // of queries; those of the others are unset
    copy_tokens(backend, blocks_.batch(), own_block(), own_keys(), whole());
    backend.copy_in(own_.get(), *kernel_->input_gradient(0));
    ran_backward_ = false;
  }

 private:
  static constexpr std::int64_t kKeysAndValues = 2;

  TokenArray whole() const { return {whole_.get(), blocks_.all_tokens(), kKeysAndValues, width_}; }
  TokenPart own_keys() const {
    return {{own_.get(), blocks_.own_tokens(), kParts, width_}, {{0, blocks_.own_tokens()}}, 0, 1};
  }
  TokenPart own_block() const {
    return {{blocks_.block(blocks_.place()), blocks_.own_tokens(), kKeysAndValues, width_},
            {{0, blocks_.own_tokens()}}};
  }

  Tensor& own_input_;
  std::int64_t width_;
  bool gathers_ = true;  ///< whether the last exchange gathered keys
  std::shared_ptr<float> own_, whole_;
  std::unique_ptr<Tensor> keys_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_token_attention(Backend& backend, const LayerSite& site,
                                                  const TokenExchange& exchange) {
  if (exchange.form == TokenExchange::Form::heads)
    return std::make_unique<HeadsAttention>(backend, site, exchange);
  return std::make_unique<KeysAttention>(backend, site, exchange);
}

}  // namespace stepcast
