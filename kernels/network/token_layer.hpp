#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/network/backend.hpp"
#include "models/partition/token_division.hpp"

namespace stepcast {

/// A batch of tokens in memory of a backend: [sample][token][group][feature]. Attention's input has the
/// groups queries, keys and values; other arrays have one group.
struct TokenArray {
  float* memory = nullptr;
  std::int64_t tokens = 0, groups = 1, features = 0;
};

/// A part of a token array: runs of tokens, one after the other, and a range of the features of each group
/// from `group` on.
struct TokenPart {
  TokenArray array;
  std::vector<Rows> tokens;
  std::int64_t first_feature = 0, group = 0;
};

/// Copies between parts with as many tokens. @param shape  its groups and features; memory is not used
void copy_tokens(Backend& backend, std::int64_t batch, const TokenPart& from, const TokenPart& to,
                 const TokenArray& shape);

/// Copies between the buffer of a collective, which has a block for each rank, and an array of all tokens of
/// the group.
class TokenBlocks {
 public:
  /// @param exchange  outlives this object
  /// @param to_all    true: an all-to-all, with a block for each pair of ranks
  TokenBlocks(Backend& backend, std::int64_t batch, const TokenExchange& exchange, bool to_all);

  Backend& backend() const { return backend_; }
  std::int64_t batch() const { return batch_; }
  int ranks() const { return exchange_.tokens.size(); }
  int place() const { return exchange_.place; }
  std::int64_t all_tokens() const { return own_tokens() * ranks(); }
  std::int64_t own_tokens() const;
  /// The tokens of a rank in an array of all tokens.
  const std::vector<Rows>& tokens_of(int place) const { return exchange_.tokens[place]; }

  /// Makes the buffer, with blocks of this many elements of every token.
  std::span<float> buffer(std::int64_t features);
  /// A ring all-gather begins, and a ring reduce-scatter ends, with part n + 1 of the buffer at rank n.
  float* block(int place) const;
  /// The block of an all-to-all.
  float* block(int from, int to) const;

  /// Copies the tokens of all ranks between the blocks of a ring and an array of all tokens.
  void gather_into(const TokenArray& whole) const;
  void scatter_from(const TokenArray& whole) const;

 private:
  Backend& backend_;
  std::int64_t batch_;
  const TokenExchange& exchange_;
  bool to_all_;
  std::int64_t block_elements_ = 0;
  std::size_t capacity_ = 0;
  std::shared_ptr<float> memory_;
};

/// A layer that exchanges tokens: another kernel computes it, between exchanges.
class TokenLayer : public LayerKernel, public TokenTransfer {
 public:
  TokenTransfer* token_transfer() override { return this; }

  Tensor& output() override { return kernel_->output(); }
  std::vector<std::size_t> stored_elements() const override { return kernel_->stored_elements(); }
  void bind(std::size_t parameter, float* value, float* gradient) override {
    kernel_->bind(parameter, value, gradient);
  }
  std::vector<float> read_parameter(std::size_t parameter) const override {
    return kernel_->read_parameter(parameter);
  }
  void write_parameter(std::size_t parameter, const std::vector<float>& values) override {
    kernel_->write_parameter(parameter, values);
  }
  std::vector<float> read_gradient(std::size_t parameter) const override {
    return kernel_->read_gradient(parameter);
  }
  void connect_backward(const std::vector<Tensor*>& output_gradients,
                        const std::vector<bool>& wanted) override;
  Tensor* input_gradient(std::size_t input) override { return kernel_->input_gradient(input); }
  bool has(Pass pass) const override { return kernel_->has(pass); }
  void run(Pass pass) override;
  Tensor* targets() override { return nullptr; }
  double loss() const override { return 0; }

 protected:
  TokenLayer(Backend& backend, const LayerSite& site, const TokenExchange& exchange, bool to_all)
      : blocks_(backend, site.batch, exchange, to_all) {}

  Shape batched(std::int64_t tokens, std::int64_t features) const {
    return {blocks_.batch(), tokens, features};
  }
  std::shared_ptr<float> memory(std::int64_t tokens, std::int64_t features) const {
    return blocks_.backend().allocate(blocks_.batch() * tokens * features);
  }
  /// Copies the sum of the readers' gradients of the output.
  void copy_output_gradient(float* to);

  TokenBlocks blocks_;
  std::unique_ptr<LayerKernel> kernel_;
  std::vector<Tensor*> output_gradients_;  ///< of the layers that read the output
  bool ran_forward_ = false;               ///< since the last exchange of activations
  bool ran_backward_ = false;              ///< since the last exchange of error signals

 private:
  std::shared_ptr<float> scratch_;
};

/// The kernel of a layer that exchanges tokens. @param exchange  outlives the kernel
std::unique_ptr<LayerKernel> make_token_layer(Backend& backend, const LayerSite& site,
                                              const TokenExchange& exchange);

/// Attention whose heads or keys ranks exchange; make_token_layer calls it.
std::unique_ptr<LayerKernel> make_token_attention(Backend& backend, const LayerSite& site,
                                                  const TokenExchange& exchange);

}  // namespace stepcast
