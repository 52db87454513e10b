#include <cublasLt.h>
#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fake_cudnn.hpp"
#include "fake_streams.hpp"

// Fakes of cuBLASLt's and cuBLAS's products: plain loops over column-major matrices by their descriptors,
// with one bias per row.

using stepcast::fake::read;
using stepcast::fake::write;

namespace {

struct Layout {
  cudaDataType type{};
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
};

/// Options of the search for an algorithm: the alignment of each array [bytes], and the workspace.
struct Preference {
  std::uint32_t a = 256, b = 256, c = 256, d = 256;
  std::uint64_t workspace = 0;
};
constexpr std::size_t kWorkspace = 4096;

struct Product {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

Layout& of(cublasLtMatrixLayout_t one) {
  return *reinterpret_cast<Layout*>(one);
}
Product& of(cublasLtMatmulDesc_t one) {
  return *reinterpret_cast<Product*>(one);
}

Preference& of(cublasLtMatmulPreference_t one) {
  return *reinterpret_cast<Preference*>(one);
}

/// The largest power of two, up to 256, that divides an address.
std::uint64_t alignment_of(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory) | 256;
  return address & ~(address - 1);
}
bool is_aligned(const void* memory, std::uint64_t bytes) {
  return bytes == 0 || reinterpret_cast<std::uintptr_t>(memory) % bytes == 0;
}

/// Index of an element in column-major memory, for a matrix that may be read transposed.
std::int64_t place(std::int64_t leading, bool transposed, std::uint64_t row, std::uint64_t column) {
  const std::int64_t i = row, k = column;
  return transposed ? k + i * leading : i + k * leading;
}
std::int64_t place(const Layout& layout, bool transposed, std::uint64_t row, std::uint64_t column) {
  return place(layout.leading, transposed, row, column);
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  stepcast::fake::set_stream(handle, stream);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t one) {
  delete &of(one);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Product);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t one) {
  delete &of(one);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t one, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
  Product& product = of(one);
  void* to = which == CUBLASLT_MATMUL_DESC_TRANSA         ? static_cast<void*>(&product.a)
             : which == CUBLASLT_MATMUL_DESC_TRANSB       ? static_cast<void*>(&product.b)
             : which == CUBLASLT_MATMUL_DESC_EPILOGUE     ? static_cast<void*>(&product.epilogue)
             : which == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? static_cast<void*>(&product.bias)
                                                          : nullptr;
  if (to == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t one) {
  delete &of(one);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t one,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* value, std::size_t bytes) {
  Preference& preference = of(one);
  void* to = which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES   ? static_cast<void*>(&preference.a)
             : which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES ? static_cast<void*>(&preference.b)
             : which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES ? static_cast<void*>(&preference.c)
             : which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES ? static_cast<void*>(&preference.d)
             : which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES   ? static_cast<void*>(&preference.workspace)
                                                                   : nullptr;
  if (to == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
/// The found algorithm takes arrays that are aligned as the preference says, and a bias that is aligned like
/// the one in the description: with better alignment it would be another algorithm.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  const Preference& told = of(preference);
  results[0] = {};
  results[0].algo.data[0] = told.a;
  results[0].algo.data[1] = told.b;
  results[0].algo.data[2] = std::max(told.c, told.d);
  results[0].algo.data[3] = of(desc).bias == nullptr ? 256 : alignment_of(of(desc).bias);
  results[0].workspaceSize = kWorkspace;
  *found = told.workspace >= kWorkspace ? 1 : 0;
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

void multiply(const Product& product, const Layout& one, const void* a, const Layout& other, const void* b,
              const Layout& result, void* d) {
  const bool a_turned = product.a == CUBLAS_OP_T, b_turned = product.b == CUBLAS_OP_T;
  const std::uint64_t depth = a_turned ? one.rows : one.columns;
  for (std::uint64_t column = 0; column < result.columns; ++column) {
    for (std::uint64_t row = 0; row < result.rows; ++row) {
      double sum = product.epilogue == CUBLASLT_EPILOGUE_BIAS ? read(result.type, product.bias, row) : 0;
      for (std::uint64_t k = 0; k < depth; ++k)
        sum += double{read(one.type, a, place(one, a_turned, row, k))} *
               read(other.type, b, place(other, b_turned, k, column));
      write(result.type, d, place(result, false, row, column), sum);
    }
  }
}

}  // namespace

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void*, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void*, const void*, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm,
                              void* work, std::size_t work_bytes, cudaStream_t stream) {
  const Product product = of(desc);
  const Layout one = of(a_layout), other = of(b_layout), result = of(d_layout);
  const bool a_turned = product.a == CUBLAS_OP_T, b_turned = product.b == CUBLAS_OP_T;
  const bool agree = (a_turned ? one.columns : one.rows) == result.rows &&
                     (b_turned ? other.rows : other.columns) == result.columns &&
                     (b_turned ? other.columns : other.rows) == (a_turned ? one.rows : one.columns) &&
                     one.type == other.type;
  const bool aligned =
      is_aligned(a, algorithm->data[0]) && is_aligned(b, algorithm->data[1]) &&
      is_aligned(d, algorithm->data[2]) &&
      (product.epilogue != CUBLASLT_EPILOGUE_BIAS || is_aligned(product.bias, algorithm->data[3]));
  if (!agree || !aligned || work == nullptr || work_bytes < kWorkspace) return CUBLAS_STATUS_INVALID_VALUE;
  stepcast::fake::enqueue(stream, [=] { multiply(product, one, a, other, b, result, d); });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type,
                            int a_leading, const void* b, cudaDataType b_type, int b_leading,
                            const void* beta, void* c, cudaDataType c_type, int c_leading,
                            cublasComputeType_t, cublasGemmAlgo_t) {
  const bool a_turned = a_form == CUBLAS_OP_T, b_turned = b_form == CUBLAS_OP_T;
  const bool fits = a_leading >= (a_turned ? k : m) && b_leading >= (b_turned ? n : k) && c_leading >= m;
  if (!fits || *static_cast<const float*>(beta) != 0) return CUBLAS_STATUS_INVALID_VALUE;
  stepcast::fake::enqueue_on(handle, [=, factor = *static_cast<const float*>(alpha)] {
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int i = 0; i < k; ++i) {
          const std::uint64_t at = i, r = row, s = column;
          sum += double{read(a_type, a, place(a_leading, a_turned, r, at))} *
                 read(b_type, b, place(b_leading, b_turned, at, s));
        }
        write(c_type, c, row + std::int64_t{column} * c_leading, sum * factor);
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

/// Refuses pointers whose alignment the library's kernels may not support.
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form,
                                   int m, int n, int k, const void* alpha, const void* const a[],
                                   cudaDataType a_type, int a_leading, const void* const b[],
                                   cudaDataType b_type, int b_leading, const void* beta, void* const c[],
                                   cudaDataType c_type, int c_leading, int count, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algorithm) {
  const std::uintptr_t wanted = k % 8 == 0 ? 16 : k % 2 == 0 ? 4 : 1;
  for (int i = 0; i < count; ++i) {
    for (const void* one : {a[i], b[i], static_cast<const void*>(c[i])})
      if (reinterpret_cast<std::uintptr_t>(one) % wanted != 0) return CUBLAS_STATUS_EXECUTION_FAILED;
    const cublasStatus_t status =
        cublasGemmEx(handle, a_form, b_form, m, n, k, alpha, a[i], a_type, a_leading, b[i], b_type, b_leading,
                     beta, c[i], c_type, c_leading, compute, algorithm);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}
