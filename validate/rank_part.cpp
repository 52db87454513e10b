#include "validate/rank_part.hpp"

#include "validate/cut_device.hpp"
#include "validate/tensor_device.hpp"

namespace stepcast {

RankPart rank_part(const Model& model, const NetworkSharing& sharing, int rank) {
  RankPart part;
  if (sharing.form == NetworkSharing::Form::blocks) {
    part.of_layers = std::make_unique<SharedPart>(shared_part(model, sharing, rank % sharing.ways));
    part.options = shared_options(*part.of_layers, sharing, {});
  } else {
    const int place = rank % device_count(sharing.cut.parts);
    part.of_samples = std::make_unique<DevicePart>(device_part(model, sharing.cut, place));
    part.options = cut_options(*part.of_samples, model, sharing, {});
  }
  return part;
}

}  // namespace stepcast
