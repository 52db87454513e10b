#include "kernels/processor.hpp"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

// GNU's OpenMP runtime is the one that oneDNN uses, whatever compiler builds this file; its header comes with
// g++ only.
extern "C" void omp_set_num_threads(int);

namespace stepcast {
namespace {

/// Numbers too small to be normal ones count as zero, in this thread and those that it starts: processors
/// take up to a hundred times as long for each, and where error signals fade, a step grew by a tenth.
void flush_subnormal_numbers() {
#ifdef __SSE2__
  constexpr unsigned kFlushResults = 0x8000, kZeroOperands = 0x0040;  // of MXCSR
  _mm_setcsr(_mm_getcsr() | kFlushResults | kZeroOperands);
#endif
}

}  // namespace

void set_kernel_threads(int threads) {
  flush_subnormal_numbers();
  omp_set_num_threads(threads);
}

}  // namespace stepcast
