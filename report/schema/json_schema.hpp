#pragma once

#include <string>

#include "core/keys.hpp"

namespace stepcast {

/// The JSON Schema (draft 7) of a file whose top level has these keys.
std::string json_schema(const std::string& title, const Keys& keys, Required required);

/// The keys as a Markdown table: key, type, default, meaning, and with which kinds it is valid if it is not
/// with all.
std::string key_table(const Keys& keys);

}  // namespace stepcast
