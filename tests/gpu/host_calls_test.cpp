#include <cublasLt.h>
#include <cudnn.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "all_networks.hpp"
#include "core/error.hpp"
#include "gpu/capture/selection.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"

// Calls of the real cuDNN and cuBLASLt that need no GPU: descriptions of every tensor, filter, convolution,
// recurrent layer and product of a dense layer of every shipped network, for every precision, layout and
// usual batch. Searches, cuBLASLt's heuristic, cuBLAS's batched products of attention and the sizes of a
// recurrent layer's weights and workspaces need a library's handle, which no machine without a device gives,
// so they are not called.
namespace stepcast::test {
namespace {

using namespace cudnn;

using FilterDesc = Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDesc = Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

struct Way {
  Element element;
  Order order;
  std::int64_t batch;
};

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const Element element : {Element::f32, Element::f16, Element::bf16})
    for (const Order order : {Order::row_major, Order::channels_last})
      for (const std::int64_t batch : {1, 16, 64}) ways.push_back({element, order, batch});
  return ways;
}

Shape batched(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

/// Sizes as the two or three spatial dimensions that cuDNN requires.
std::vector<int> spatial(const std::vector<std::int64_t>& sizes, int fill) {
  std::vector<int> result(sizes.begin(), sizes.end());
  if (result.size() == 1) result.insert(result.begin(), fill);
  return result;
}

/// The output's sizes of a convolution by cuDNN.
Shape output_by_cudnn(const Layer& layer, const Way& way) {
  const Window& window = layer.window;
  Shape input = batched(way.batch, layer.input);
  std::vector<std::int64_t> common;
  for (std::size_t d = 0; d < window.kernel.size(); ++d) {
    common.push_back(std::min(window.pad_before[d], window.pad_after[d]));
    input[d + 2] += window.pad_before[d] + window.pad_after[d] - 2 * common[d];
  }
  const TensorDesc x = describe(way.element, as_image(input), way.order);
  const Shape filter = as_image(layer.parameters.front().shape);
  const std::vector<int> dims(filter.begin(), filter.end()),
      pad = spatial(common, 0), stride = spatial(window.stride, 1), dilation(pad.size(), 1);
  const auto w = make_owned<FilterDesc>(cudnnCreateFilterDescriptor, "cudnnCreateFilterDescriptor");
  check(cudnnSetFilterNdDescriptor(w.get(), cudnn_type(way.element),
                                   way.order == Order::channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                   dims.size(), dims.data()),
        "cudnnSetFilterNdDescriptor");
  const auto c =
      make_owned<ConvolutionDesc>(cudnnCreateConvolutionDescriptor, "cudnnCreateConvolutionDescriptor");
  check(cudnnSetConvolutionNdDescriptor(c.get(), pad.size(), pad.data(), stride.data(), dilation.data(),
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "cudnnSetConvolutionNdDescriptor");
  check(cudnnSetConvolutionGroupCount(c.get(), layer.groups), "cudnnSetConvolutionGroupCount");
  std::vector<int> found(dims.size());
  check(cudnnGetConvolutionNdForwardOutputDim(c.get(), x.get(), w.get(), found.size(), found.data()),
        "cudnnGetConvolutionNdForwardOutputDim");
  return {found.begin(), found.end()};
}

bool is_too_large(const Layer& layer, std::int64_t batch) {
  const auto most = std::max(elements(layer.input), elements(layer.output));
  return 1.0 * batch * most >= 2147483648.0;
}

}  // namespace

TEST_CASE("cuDNN itself accepts every convolution of every network and finds the same output",
          "[gpu][host-calls]") {
  int convolutions = 0, refused = 0;
  for (const std::string& name : network_names()) {
    CAPTURE(name);
    const Model model = model_of(name);
    for (const Layer& layer : model.layers) {
      if (layer.kind != LayerKind::convolution) continue;
      for (const Way& way : all_ways()) {
        CAPTURE(layer.name, way.batch, ordinal(way.element), ordinal(way.order));
        if (is_too_large(layer, way.batch)) {
          ++refused;
          continue;
        }
        ++convolutions;
        REQUIRE(output_by_cudnn(layer, way) == as_image(batched(way.batch, layer.output)));
      }
    }
  }
  CHECK(convolutions > 10000);
  CHECK(refused > 0);  // mesh-2k with 16 samples
}

namespace {

/// Requires that cuDNN reads the sizes of a recurrent layer and of its sequences as the layer has them.
void require_sizes_of(const Layer& layer, const Way& way) {
  using DropoutDesc = Owned<cudnnDropoutDescriptor_t, cudnnDestroyDropoutDescriptor>;
  const auto dropout = make_owned<DropoutDesc>(cudnnCreateDropoutDescriptor, "cudnnCreateDropoutDescriptor");
  const RnnDesc rnn = describe_rnn(layer, way.element, CUDNN_DEFAULT_MATH, dropout.get());
  cudnnRNNAlgo_t algorithm{};
  cudnnRNNMode_t mode{};
  cudnnRNNBiasMode_t bias{};
  cudnnDirectionMode_t direction{};
  cudnnRNNInputMode_t input{};
  cudnnDataType_t data{}, sums{};
  cudnnMathType_t math{};
  std::int32_t features = 0, hidden = 0, projected = 0, layers = 0;
  cudnnDropoutDescriptor_t found = nullptr;
  std::uint32_t flags = 0;
  check(cudnnGetRNNDescriptor_v8(rnn.get(), &algorithm, &mode, &bias, &direction, &input, &data, &sums, &math,
                                 &features, &hidden, &projected, &layers, &found, &flags),
        "cudnnGetRNNDescriptor_v8");
  REQUIRE(mode == (layer.kind == LayerKind::lstm ? CUDNN_LSTM : CUDNN_GRU));
  REQUIRE((direction == CUDNN_BIDIRECTIONAL) == layer.bidirectional);
  REQUIRE(data == cudnn_type(way.element));
  REQUIRE(sums == CUDNN_DATA_FLOAT);
  REQUIRE(features == layer.input.back());
  REQUIRE(hidden == layer.hidden);
  REQUIRE(projected == layer.hidden);  // no projection
  REQUIRE(layers == 1);

  const std::int64_t steps = layer.input.front();
  const SequenceDesc x = describe_sequences(way.element, way.batch, steps, features);
  cudnnRNNDataLayout_t layout{};
  int longest = 0, batch = 0, width = 0;
  std::vector<int> lengths(way.batch);
  float padding = 1;
  check(cudnnGetRNNDataDescriptor(x.get(), &data, &layout, &longest, &batch, &width, lengths.size(),
                                  lengths.data(), &padding),
        "cudnnGetRNNDataDescriptor");
  REQUIRE(layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED);
  REQUIRE(longest == steps);
  REQUIRE(batch == way.batch);
  REQUIRE(width == features);
  REQUIRE(std::ranges::all_of(lengths, [&](int length) { return length == steps; }));
  // The states before the first step and after the last.
  describe(way.element, {layer.bidirectional ? 2 : 1, way.batch, layer.hidden}, Order::row_major);
}

}  // namespace

TEST_CASE("cuDNN itself accepts every recurrent layer and its sequences", "[gpu][host-calls]") {
  int layers = 0;
  for (const std::string& name : network_names()) {
    CAPTURE(name);
    const Model model = model_of(name);
    for (const Layer& layer : model.layers) {
      if (layer.kind != LayerKind::lstm && layer.kind != LayerKind::gru) continue;
      for (const Way& way : all_ways()) {
        CAPTURE(layer.name, way.batch, ordinal(way.element));
        require_sizes_of(layer, way);
        ++layers;
      }
    }
  }
  CHECK(layers > 100);
}

TEST_CASE("cuDNN itself counts the bytes of every tensor as the backend does", "[gpu][host-calls]") {
  int tensors = 0;
  for (const std::string& name : network_names()) {
    CAPTURE(name);
    const Model model = model_of(name);
    for (const Layer& layer : model.layers) {
      if (layer.output.size() != 3 && layer.output.size() != 4) continue;
      for (const Way& way : all_ways()) {
        const Shape shape = batched(way.batch, layer.output);
        if (stepcast::cudnn::element_count(shape) > std::int64_t{1} << 30) continue;
        const TensorDesc desc = describe(way.element, shape, way.order);
        std::size_t bytes = 0;
        check(cudnnGetTensorSizeInBytes(desc.get(), &bytes), "cudnnGetTensorSizeInBytes");
        ++tensors;
        REQUIRE(bytes ==
                bytes_of(way.element) * static_cast<std::size_t>(stepcast::cudnn::element_count(shape)));
      }
    }
  }
  CHECK(tensors > 10000);
}

namespace {

template <class Value>
Value attribute_of(const MatrixLayout& layout, cublasLtMatrixLayoutAttribute_t which) {
  Value value{};
  check(cublasLtMatrixLayoutGetAttribute(layout.get(), which, &value, sizeof value, nullptr),
        "cublasLtMatrixLayoutGetAttribute");
  return value;
}
template <class Value>
Value attribute_of(const MatmulDesc& product, cublasLtMatmulDescAttributes_t which) {
  Value value{};
  check(cublasLtMatmulDescGetAttribute(product.get(), which, &value, sizeof value, nullptr),
        "cublasLtMatmulDescGetAttribute");
  return value;
}

/// Requires that cuBLASLt reads a row-major matrix as its transposed, column-major one.
void require_matrix(const MatrixLayout& layout, const Matrix& matrix) {
  REQUIRE(attribute_of<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS) ==
          static_cast<std::uint64_t>(matrix.columns));
  REQUIRE(attribute_of<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS) ==
          static_cast<std::uint64_t>(matrix.rows));
  REQUIRE(attribute_of<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD) == matrix.columns);
  REQUIRE(attribute_of<std::uint32_t>(layout, CUBLASLT_MATRIX_LAYOUT_TYPE) ==
          static_cast<std::uint32_t>(matrix.type));
}

/// Requires that the inner dimensions of the product agree as cuBLASLt reads them, and that the bias is
/// there.
void require_product(const ProductShape& shape, cublasComputeType_t compute) {
  alignas(64) static const char bias[64]{};
  const ProductDescriptors made = describe_product(shape, compute, bias);
  require_matrix(made.first, shape.b);
  require_matrix(made.second, shape.a);
  require_matrix(made.result, shape.c);
  const auto depth = [&](const MatrixLayout& layout, cublasLtMatmulDescAttributes_t transpose, bool first) {
    const bool swapped = attribute_of<std::int32_t>(made.product, transpose) == CUBLAS_OP_T;
    return attribute_of<std::uint64_t>(
        layout, swapped == first ? CUBLASLT_MATRIX_LAYOUT_ROWS : CUBLASLT_MATRIX_LAYOUT_COLS);
  };
  REQUIRE(depth(made.first, CUBLASLT_MATMUL_DESC_TRANSA, true) ==
          depth(made.second, CUBLASLT_MATMUL_DESC_TRANSB, false));
  REQUIRE(attribute_of<std::int32_t>(made.product, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE) == compute);
  const auto epilogue = attribute_of<std::uint32_t>(made.product, CUBLASLT_MATMUL_DESC_EPILOGUE);
  REQUIRE(epilogue == (shape.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT));
  if (shape.bias) REQUIRE(attribute_of<const void*>(made.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER) == bias);
}

/// The products of a dense layer: its forward pass, and the gradients of its input and of its weights.
std::vector<ProductShape> products_of(const Layer& layer, std::int64_t batch, cudaDataType_t type) {
  const Shape& weights = layer.parameters.front().shape;
  const std::int64_t inputs = weights.back(), outputs = weights.front();
  const Matrix x{batch * elements(layer.input) / inputs, inputs, type}, y{x.rows, outputs, type},
      w{outputs, inputs, type}, gradient{outputs, inputs, CUDA_R_32F};
  return {{.a = x, .b = w, .c = y, .b_transposed = Transpose::yes, .bias = layer.parameters.size() > 1},
          {.a = y, .b = w, .c = x},
          {.a = y, .b = x, .c = gradient, .a_transposed = Transpose::yes}};
}

}  // namespace

TEST_CASE("cuBLASLt itself reads the products of every dense layer as the backend describes them",
          "[gpu][host-calls]") {
  int products = 0;
  for (const std::string& name : network_names()) {
    CAPTURE(name);
    const Model model = model_of(name);
    for (const Layer& layer : model.layers) {
      if (layer.kind != LayerKind::dense || layer.parameters.empty()) continue;
      for (const cudaDataType_t type : {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF}) {
        for (const std::int64_t batch : {1, 16, 64}) {
          CAPTURE(layer.name, batch, type);
          for (const ProductShape& one : products_of(layer, batch, type)) {
            require_product(one, CUBLAS_COMPUTE_32F);
            if (type == CUDA_R_32F) require_product(one, CUBLAS_COMPUTE_32F_FAST_TF32);
            ++products;
          }
        }
      }
    }
  }
  CHECK(products > 1000);
}

}  // namespace stepcast::test
