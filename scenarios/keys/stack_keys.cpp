#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {

const std::vector<std::string>& framework_names() {
  static const std::vector<std::string> names{"mxnet", "oneflow", "paddlepaddle", "pytorch", "tensorflow"};
  return names;
}

const Keys& stack_value_keys() {
  static const Keys keys{{"key", "text", "", "required", "key of `strategy`"},
                         {"value", "value", "", "required", "its value in this stack"},
                         {"source", "text", "", "required", "where the value is from"},
                         {"without_nccl", "boolean", "", "false",
                          "the value holds only where the platform names no NCCL, which chooses by itself"}};
  return keys;
}

const Keys& stack_keys() {
  static const Keys keys{
      {"name", "text", "", "required", "name of the software stack"},
      {"what", "text", "", "required", "how the stack exchanges gradients"},
      {"framework", "name", "mxnet, oneflow, paddlepaddle, pytorch, tensorflow", "none",
       "framework that trains, as the scenario's `framework`"},
      {"kind", "name", "", "none", "strategy that takes the place of `synchronous`"},
      {"values", "list of mappings", "", "required", "values of keys of `strategy`", stack_value_keys}};
  return keys;
}

}  // namespace stepcast
