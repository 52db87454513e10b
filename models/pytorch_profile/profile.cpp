#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

std::int64_t recorded_elements(const Shape& shape) {
  double product = 1;
  for (const std::int64_t size : shape) product *= size < 0 ? 1e30 : static_cast<double>(size);
  return product > 1e15 ? -1 : static_cast<std::int64_t>(product);
}

const char* to_string(Share share) {
  switch (share) {
    case Share::optimizer:
      return "optimizer";
    case Share::zero_grad:
      return "zero_grad";
    case Share::accumulation:
      return "gradients added to .grad";
    case Share::input:
      return "copies of the input";
    case Share::communication:
      return "NCCL";
    case Share::buckets:
      return "buckets of DDP";
    case Share::other:
      return "other operators";
    case Share::unknown:
      break;
  }
  return "not attributed";
}

}  // namespace stepcast
