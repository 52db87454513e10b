#pragma once

#include <string>
#include <string_view>

#include "validate/measure/nccl_tests.hpp"

namespace stepcast {

/// Reads what nccl-tests writes with `-J`. @throws InputError
NcclTests read_nccl_json(std::string_view text, const std::string& file);

}  // namespace stepcast
