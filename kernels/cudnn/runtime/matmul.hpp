#pragma once

#include "kernels/cudnn/runtime/device.hpp"

namespace stepcast::cudnn {

using MatmulDesc = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

/// A row-major matrix of `rows` contiguous rows with `columns` elements each.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  cudaDataType_t type = CUDA_R_32F;
};

enum class Transpose { no, yes };

/// The product c = a' b' (+ bias to every row), where a' and b' may be transposed.
struct ProductShape {
  Matrix a, b, c;
  Transpose a_transposed = Transpose::no, b_transposed = Transpose::no;
  bool bias = false;  ///< add a bias with one number per column of c, in c's element type
};

/// A product of row-major matrices by cuBLASLt, with the first choice of its heuristic.
class Matmul {
 public:
  Matmul(std::shared_ptr<Device> device, const ProductShape& shape);

  void run(const void* a, const void* b, void* c, const void* bias = nullptr) const;

 private:
  std::shared_ptr<Device> device_;
  MatmulDesc product_;
  MatrixLayout first_, second_, result_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace stepcast::cudnn
