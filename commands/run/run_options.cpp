#include "commands/run/run_options.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {

void read_shard(RunOptions& options) {
  if (options.shard_text.empty()) return;
  const auto slash = options.shard_text.find('/');
  const auto shard = parse_integer(std::string_view(options.shard_text).substr(0, slash));
  const auto shards = slash == std::string::npos
                          ? std::nullopt
                          : parse_integer(std::string_view(options.shard_text).substr(slash + 1));
  if (!shard || !shards || *shards < 1 || *shards > 1'000'000 || *shard < 0 || *shard >= *shards) {
    throw InputError(
        fmt::format("--shard: expected i/N with 0 <= i < N, got \"{}\"", printable(options.shard_text)));
  }
  options.shard = *shard;
  options.shards = *shards;
}

}  // namespace stepcast
