#pragma once

#include "kernels/cudnn/device.hpp"

namespace stepcast::cudnn {

using MatmulDesc = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

/// A matrix in memory: `rows` contiguous rows of `columns` elements.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  cudaDataType_t type = CUDA_R_32F;
};

enum class Transpose { no, yes };

/// What a product is of: c = a' b' (+ bias to every row), each operand perhaps transposed.
struct ProductShape {
  Matrix a, b, c;
  Transpose a_transposed = Transpose::no, b_transposed = Transpose::no;
  bool bias = false;  ///< of c's element, one a column of c
};

/// One product of row-major matrices by cuBLASLt, with the algorithm that its heuristic puts first.
class MatrixProduct {
 public:
  MatrixProduct(std::shared_ptr<Device> device, const ProductShape& shape);

  void run(const void* a, const void* b, void* c, const void* bias = nullptr) const;

 private:
  std::shared_ptr<Device> device_;
  MatmulDesc product_;
  MatrixLayout first_, second_, result_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace stepcast::cudnn
