#pragma once

namespace stepcast {

inline constexpr const char* kVersion = STEPCAST_VERSION;

}  // namespace stepcast
