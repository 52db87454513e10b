#pragma once

namespace stepcast {

/// Whether `expects` checks: in builds without NDEBUG, such as the presets dev and sanitize.
#ifdef NDEBUG
constexpr bool kChecksCallers = false;
#else
constexpr bool kChecksCallers = true;
#endif

/// Throws std::logic_error `FILE:LINE: expected of the caller: WHAT`.
[[noreturn]] void refuse_caller(const char* what, const char* file, int line);

/// States what a caller must guarantee. A release build checks nothing, so errors of users are refused
/// elsewhere.
inline void expects(bool condition, const char* what, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (kChecksCallers && !condition) refuse_caller(what, file, line);
}

}  // namespace stepcast
