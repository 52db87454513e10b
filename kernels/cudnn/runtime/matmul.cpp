#include "kernels/cudnn/runtime/matmul.hpp"

#include <algorithm>

namespace stepcast::cudnn {
namespace {

constexpr float kOne = 1, kZero = 0;
/// Alignment given to the heuristic [bytes]; its default is 256, but parameters start at multiples of 64
/// bytes.
constexpr std::uint32_t kAlignment = 16;

using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// The layout of a row-major matrix for cuBLASLt, whose matrices are column-major: the transposed matrix
/// {columns, rows}.
MatrixLayout layout_of(const Matrix& m) {
  return make_owned<MatrixLayout>(
      [&](cublasLtMatrixLayout_t* made) {
        return cublasLtMatrixLayoutCreate(made, m.type, static_cast<std::uint64_t>(m.columns),
                                          static_cast<std::uint64_t>(m.rows), m.columns);
      },
      "cublasLtMatrixLayoutCreate");
}

template <class Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(desc, which, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute");
}

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

Preference preference_within(std::uint64_t workspace) {
  auto preference = make_owned<Preference>(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  set(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(preference.get(), which, kAlignment);
  }
  return preference;
}

cublasOperation_t operation(Transpose transpose) {
  return transpose == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

// In column-major terms the row-major product c = a b is c^T = b^T a^T, so b comes first.
Matmul::Matmul(std::shared_ptr<Device> device, const ProductShape& shape)
    : device_(std::move(device)),
      product_(make_owned<MatmulDesc>(
          [&](cublasLtMatmulDesc_t* made) {
            return cublasLtMatmulDescCreate(made, device_->cublas_compute(), CUDA_R_32F);
          },
          "cublasLtMatmulDescCreate")),
      first_(layout_of(shape.b)),
      second_(layout_of(shape.a)),
      result_(layout_of(shape.c)) {
  set(product_.get(), CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.b_transposed));
  set(product_.get(), CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.a_transposed));
  if (shape.bias) {
    set(product_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    // The heuristic reads the alignment from the pointer. Parameters start at multiples of 64 bytes, and
    // this pointer has no larger alignment than that.
    set<const void*>(product_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                     static_cast<const char*>(device_->workspace.data()) + 64);
  }
  const std::size_t workspace = std::min<std::size_t>(device_->workspace.bytes, std::size_t{64} << 20);
  const Preference preference = preference_within(workspace);
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(device_->lt.get(), product_.get(), first_.get(), second_.get(),
                                       result_.get(), result_.get(), preference.get(), 1, &chosen_, &found),
        "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) throw GpuError("cublasLtMatmulAlgoGetHeuristic: no algorithm for this product");
  device_->workspace.use(chosen_.workspaceSize);
}

void Matmul::run(const void* a, const void* b, void* c, const void* bias) const {
  if (bias != nullptr) set(product_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  check(cublasLtMatmul(device_->lt.get(), product_.get(), &kOne, b, first_.get(), a, second_.get(), &kZero, c,
                       result_.get(), c, result_.get(), &chosen_.algo, device_->workspace.data(),
                       chosen_.workspaceSize, device_->stream.get()),
        "cublasLtMatmul");
}

}  // namespace stepcast::cudnn
