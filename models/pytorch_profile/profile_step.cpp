#include "models/pytorch_profile/profile_step.hpp"

namespace stepcast {

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
