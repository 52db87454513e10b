#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/reader/library.hpp"

namespace stepcast {

/// A value of a software stack, such as a bucket size, with the place in its documents or source that says
/// so.
struct StackValue {
  std::string path;  ///< in a scenario, such as "strategy.bucket"
  YamlNode value;
  std::string source;
  bool without_nccl = false;  ///< holds only where the platform names no NCCL, which chooses by itself
  /// Holds only where devices of a node do not reach each other's memory.
  bool without_peer_access = false;
};

/// Known options of a framework's exchange of gradients: a file of strategies/stacks/.
struct SoftwareStack {
  std::string name, what;
  std::optional<YamlNode> kind;  ///< strategy that takes the place of `synchronous`; none: any strategy
  std::vector<StackValue> values;
};

/// @throws InputError
SoftwareStack read_software_stack(const YamlValue& value);

/// The stack that `strategy.like` of the document names; none without the key. @throws InputError
std::optional<SoftwareStack> software_stack_of(const YamlNode& document, Library& library);

/// Sets the keys that the document does not give to the values of its stack: those of `strategy:` that its
/// strategy has, others but `kernels:` in a mapping that the document has. Without a stack, where layer times
/// are derived, the host issues operators as PyTorch's does, unless a factor on the layer times holds its
/// time.
/// @returns the paths that were set
std::vector<std::string> apply_software_stack(YamlNode& document, Library& library);

/// The platform's version of NCCL in the document's `year`; none where the document or the platform lacks
/// them.
std::optional<Assignment> nccl_of_year(const YamlNode& document, Library& library);

/// Sets the stack's keys of `kernels:`, if the document has that mapping.
/// @param given  `kernels` of the scenario, whose values hold; the stack's replace those of
///               apply_usual_kernels
/// @returns the paths that were set
std::vector<std::string> apply_stack_kernels(YamlNode& document, const YamlNode& given, Library& library);

}  // namespace stepcast
