#pragma once

#include <cstddef>
#include <string>

namespace stepcast {

/// All of so many bytes over a socket that waits; false where the other side is gone.
bool sent(int socket, const void* data, std::size_t bytes);
bool received(int socket, void* data, std::size_t bytes);

/// The same for a text of at most 64 KiB, its length first.
bool sent_text(int socket, const std::string& text);
bool received_text(int socket, std::string& text);

}  // namespace stepcast
