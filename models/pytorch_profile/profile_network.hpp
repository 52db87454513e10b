#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/network/model.hpp"
#include "models/pytorch_profile/layer_match.hpp"

namespace stepcast {

/// A network that is known only from the operators of a profile.
struct ProfileNetwork {
  std::string text;  ///< of its network file
  Model model;       ///< what `text` says
  LayerMatch match;  ///< for each layer, its operator; none for a layer that only changes the shape
  int measured = 0;  ///< layers of kind `measured`
};

/// Writes the network of a profile: its operators in forward order. An operator whose shapes say all about it
/// becomes a layer of its kind; any other is of kind `measured`. A profile does not say which operator reads
/// which: a layer reads the one above if the sizes fit, else an output that another reader's gradient was
/// added to, else the latest output that fits. Without shapes all layers are `measured` and outputs are one
/// number a sample.
/// @param name        name of the network
/// @param parameters  elements of the trained arrays in forward order, for a profile without shapes; or empty
/// @throws InputError in one line: the sizes of parameters are not known, or do not fit
ProfileNetwork profile_network(const std::string& file, std::vector<NetworkOperator> operators,
                               std::int64_t batch, const std::string& name,
                               const std::vector<std::int64_t>& parameters);

}  // namespace stepcast
