#include "kernels/processor.hpp"

// GNU's OpenMP runtime is the one that oneDNN uses, whatever compiler builds this file; its header comes with
// g++ only.
extern "C" void omp_set_num_threads(int);

namespace stepcast {

void set_kernel_threads(int threads) {
  omp_set_num_threads(threads);
}

}  // namespace stepcast
