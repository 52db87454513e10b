#include <algorithm>
#include <functional>

#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

/// Copies a row of the table for every token. The gradient is dense, as in most frameworks: zeros plus the
/// sums of the rows that were read.
class Embedding final : public OnednnLayer {
 public:
  Embedding(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        tokens_(reordered(forward_, input().memory(), plain(input().shape()))),
        count_(element_count(input().shape())),
        columns_(layer().output.back()) {
    const Desc table = plain(layer().parameters.at(0).shape);
    add_parameter(table, table);
    const OnednnTensor& output = make_output(plain(batched(layer().output)));
    forward_.emplace_back([this, to = output.data()] {
      for (std::int64_t i = 0; i < count_; ++i) {
        std::copy_n(parameter(0).data() + row(i) * columns_, columns_, to + i * columns_);
      }
    });
  }

 private:
  std::int64_t row(std::int64_t token) const {
    return static_cast<std::int64_t>(static_cast<const float*>(tokens_.get_data_handle())[token]);
  }

  void connect() override {
    const dnnl::memory gradient = output_gradient(backward_weights_, output_desc());
    backward_weights_.emplace_back([this, from = static_cast<const float*>(gradient.get_data_handle())] {
      float* to = parameter(0).gradient_data();
      std::fill_n(to, element_count(layer().parameters[0].shape), 0.f);
      for (std::int64_t i = 0; i < count_; ++i) {
        for (std::int64_t k = 0; k < columns_; ++k) to[row(i) * columns_ + k] += from[i * columns_ + k];
      }
    });
  }

  dnnl::memory tokens_;
  std::int64_t count_, columns_;
};

float* data_of(const dnnl::memory& memory) {
  return static_cast<float*>(memory.get_data_handle());
}

/// Adds row t of a table to token t of every sample. The error signal of the input is that of the output.
class PositionEmbedding final : public OnednnLayer {
 public:
  PositionEmbedding(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        runs_(site.share != nullptr ? site.share->tokens : std::vector<Rows>{{0, layer().input.front()}}) {
    const Desc table = plain(layer().parameters.at(0).shape);
    add_parameter(table, table);
    const float* from = data_of(reordered(forward_, input().memory(), plain(input().shape())));
    forward_.emplace_back([this, from, to = make_output(plain(input().shape())).data()] {
      for_each_run([&](std::int64_t row, std::int64_t first, std::int64_t count) {
        const float* rows = parameter(0).data() + row;
        std::transform(rows, rows + count, from + first, to + first, std::plus<>());
      });
    });
  }

 private:
  void connect() override {
    if (wanted()) share_input_gradient(output_gradient_tensor(backward_data_));
    const float* from = data_of(output_gradient(backward_weights_, output_desc()));
    backward_weights_.emplace_back([this, from] {
      float* sum = parameter(0).gradient_data();
      std::fill_n(sum, elements(layer().parameters[0].shape), 0.f);
      for_each_run([&](std::int64_t row, std::int64_t first, std::int64_t count) {
        std::transform(sum + row, sum + row + count, from + first, sum + row, std::plus<>());
      });
    });
  }

  /// Calls visit(first element of the table, first element of the tokens, elements) for each run of adjacent
  /// tokens, of which a device may have some.
  template <class Visit>
  void for_each_run(const Visit& visit) const {
    const std::int64_t width = layer().output.back();
    std::int64_t first = 0;
    for (std::int64_t b = 0; b < batch(); ++b) {
      for (const Rows& run : runs_) {
        visit(run.first * width, first, run.size() * width);
        first += run.size() * width;
      }
    }
  }

  std::vector<Rows> runs_;  ///< tokens of a sample, which are rows of the table; the table may have more
};

/// Puts a trained token before those of each sample.
class ClassToken final : public OnednnLayer {
 public:
  ClassToken(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        token_(layer().output.back()),
        others_(elements(layer().input)) {
    const Desc token = plain(layer().parameters.at(0).shape);
    add_parameter(token, token);
    const float* from = data_of(reordered(forward_, input().memory(), plain(input().shape())));
    forward_.emplace_back([this, from, to = make_output(plain(batched(layer().output))).data()] {
      for (std::int64_t b = 0; b < batch(); ++b) {
        std::copy_n(parameter(0).data(), token_, to + sample(b));
        std::copy_n(from + b * others_, others_, to + sample(b) + token_);
      }
    });
  }

 private:
  std::int64_t sample(std::int64_t b) const { return b * (token_ + others_); }

  void connect() override {
    if (wanted()) {
      const float* from = data_of(output_gradient(backward_data_, output_desc()));
      float* to = make_input_gradient(plain(input().shape())).data();
      backward_data_.emplace_back([this, from, to] {
        for (std::int64_t b = 0; b < batch(); ++b)
          std::copy_n(from + sample(b) + token_, others_, to + b * others_);
      });
    }
    const float* from = data_of(output_gradient(backward_weights_, output_desc()));
    backward_weights_.emplace_back([this, from] {
      float* sum = parameter(0).gradient_data();
      std::fill_n(sum, token_, 0.f);
      for (std::int64_t b = 0; b < batch(); ++b)
        std::transform(sum, sum + token_, from + sample(b), sum, std::plus<>());
    });
  }

  std::int64_t token_, others_;  ///< elements of a sample
};

/// The first token of every sample; the error signals of the others are zero.
class FirstToken final : public OnednnLayer {
 public:
  FirstToken(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        token_(layer().output.back()),
        sample_(elements(layer().input)) {
    const float* from = data_of(reordered(forward_, input().memory(), plain(input().shape())));
    forward_.emplace_back([this, from, to = make_output(plain(batched(layer().output))).data()] {
      for (std::int64_t b = 0; b < batch(); ++b) std::copy_n(from + b * sample_, token_, to + b * token_);
    });
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const float* from = data_of(output_gradient(backward_data_, output_desc()));
    float* to = make_input_gradient(plain(input().shape())).data();
    backward_data_.emplace_back([this, from, to] {
      std::fill_n(to, batch() * sample_, 0.f);
      for (std::int64_t b = 0; b < batch(); ++b) std::copy_n(from + b * token_, token_, to + b * sample_);
    });
  }

  std::int64_t token_, sample_;  ///< elements
};

}  // namespace

std::unique_ptr<LayerKernel> make_embedding(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Embedding>(std::move(library), site);
}

std::unique_ptr<LayerKernel> make_position_embedding(std::shared_ptr<Library> library,
                                                     const LayerSite& site) {
  return std::make_unique<PositionEmbedding>(std::move(library), site);
}

std::unique_ptr<LayerKernel> make_class_token(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<ClassToken>(std::move(library), site);
}

std::unique_ptr<LayerKernel> make_first_token(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<FirstToken>(std::move(library), site);
}

}  // namespace stepcast::onednn
