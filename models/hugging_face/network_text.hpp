#pragma once

#include <string>

#include "models/hugging_face/config.hpp"

namespace stepcast {

/// The text of a network file for a transformer, from its input (words or an image) to its losses. Dropout is
/// left out. A sliding window of attention is not modelled: every token attends to all tokens.
/// @param name      name of the network
/// @param sequence  tokens of a sample; 0: as many as the configuration allows. Unused by networks of images
/// @throws InputError if a table of positions has fewer rows than `sequence`
std::string network_text(const HuggingFaceConfig& config, const std::string& name, std::int64_t sequence);

}  // namespace stepcast
