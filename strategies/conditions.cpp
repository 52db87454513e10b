#include "strategies/conditions.hpp"

namespace stepcast {

const std::vector<std::string>& jitter_names() {
  static const std::vector<std::string> names{"none", "trace", "lognormal", "layers"};
  return names;
}

const std::vector<std::string>& form_names() {
  static const std::vector<std::string> names{"automatic", "message", "fluid", "coupled"};
  return names;
}

}  // namespace stepcast
