#pragma once

#include "core/keys.hpp"

namespace stepcast {

// The keys of a trace and of a file of compression times (docs/reference/trace-files.md). The readers of this
// folder use these tables.
const Keys& trace_keys();
const Keys& layer_trace_keys();  ///< of one layer of a trace
const Keys& pass_keys();         ///< of one pass of a layer
const Keys& compression_file_keys();
const Keys& codec_keys();
const Keys& byte_times_keys();

}  // namespace stepcast
