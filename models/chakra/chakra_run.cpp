#include "models/chakra/chakra_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

std::string place(const ChakraRun& run, int rank, const ChakraNode& node) {
  return fmt::format("{}: node {} (\"{}\")", run.files[rank].string(), node.id, printable(node.name));
}

/// The files by rank.
std::vector<fs::path> trace_files(const fs::path& folder) {
  std::map<std::int64_t, fs::path> by_rank;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".et") continue;
    const std::string stem = entry.path().stem().string();
    const auto rank = parse_integer(stem.substr(stem.rfind('.') + 1));
    if (!rank || *rank < 0)
      throw InputError(fmt::format("{}: expected a name such as step.RANK.et", entry.path().string()));
    if (const auto [other, is_new] = by_rank.emplace(*rank, entry.path()); !is_new)
      throw InputError(fmt::format("{}: expected the traces of one run, got two of rank {}: {}",
                                   entry.path().string(), *rank, other->second.string()));
  }
  if (error) throw InputError(fmt::format("{}: cannot read: {}", folder.string(), error.message()));
  std::vector<fs::path> files;
  for (const auto& [rank, file] : by_rank) {
    if (rank != std::ssize(files)) break;
    files.push_back(file);
  }
  if (files.empty() || files.size() < by_rank.size())
    throw InputError(
        fmt::format("{}: expected a file *.RANK.et for each rank from 0 on, got none for rank {}",
                    folder.string(), files.size()));
  return files;
}

using Groups = std::map<std::string, std::vector<int>>;

/// {"1": [0, 1], ...}
Groups groups_of_file(const fs::path& file) {
  try {
    return nlohmann::json::parse(read_file(file)).get<Groups>();
  } catch (const nlohmann::json::exception&) {
    throw InputError(
        fmt::format("{}: expected lists of ranks by group, such as {{\"1\": [0, 1]}}", file.string()));
  }
}

/// Adds the process groups that PyTorch's converter stores as the text of a list with one text of JSON.
void add_process_groups(const std::string& values, Groups& groups) {
  const auto begin = values.find("[{"), end = values.rfind("}]");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return;
  const auto list = nlohmann::json::parse(values.substr(begin, end + 2 - begin), nullptr, false);
  if (!list.is_array()) return;
  for (const auto& one : list) {
    if (!one.is_object() || !one.contains("pg_name") || !one.contains("ranks")) continue;
    try {
      groups[one.at("pg_name").get<std::string>()] = one.at("ranks").get<std::vector<int>>();
    } catch (const nlohmann::json::exception&) {
      continue;  // a group of another form; a collective that names it is refused
    }
  }
}

/// The nodes in an order in which each stands behind those that it comes after; the lowest number first.
std::vector<ChakraNode> in_order(const ChakraRun& run, int rank, std::vector<ChakraNode> nodes) {
  std::unordered_map<std::uint64_t, std::size_t> index;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!index.emplace(nodes[i].id, i).second)
      throw InputError(place(run, rank, nodes[i]) + ": expected a number that no other node has");
  }
  std::vector<std::vector<std::size_t>> next(nodes.size());
  std::vector<std::size_t> left(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto& after = nodes[i].after;
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    for (const std::uint64_t earlier : after) {
      const auto found = index.find(earlier);
      if (found == index.end())
        throw InputError(
            fmt::format("{}: comes after node {}, which is not there", place(run, rank, nodes[i]), earlier));
      next[found->second].push_back(i);
    }
    left[i] = after.size();
  }
  using Entry = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (left[i] == 0) ready.emplace(nodes[i].id, i);
  }
  std::vector<ChakraNode> ordered;
  while (!ready.empty()) {
    const std::size_t i = ready.top().second;
    ready.pop();
    for (const std::size_t later : next[i]) {
      if (--left[later] == 0) ready.emplace(nodes[later].id, later);
    }
    ordered.push_back(nodes[i]);
  }
  if (ordered.size() == nodes.size()) return ordered;
  const auto stuck = std::ranges::find_if(left, [](std::size_t count) { return count > 0; });
  throw InputError(place(run, rank, nodes[stuck - left.begin()]) +
                   ": comes after itself, by way of other nodes");
}

/// @throws InputError for a collective that does not say what it is
void check_collective(const ChakraRun& run, int rank, const ChakraNode& node) {
  using Kind = ChakraNode::Collective;
  const auto refuse = [&](const std::string& what) {
    throw InputError(place(run, rank, node) + ": " + what);
  };
  if (!node.has_kind) refuse("has no comm_type, which says the collective");
  if (node.collective > Kind::barrier || node.collective == Kind::gather || node.collective == Kind::scatter)
    refuse(fmt::format("collectives of type {} cannot be replayed", static_cast<int>(node.collective)));
  if (node.over_some_dimensions && node.group.empty())
    refuse(
        "its involved_dim leaves out dimensions of a network, which is not here; give it a group (pg_name)");
}

void check_node(const ChakraRun& run, int rank, const ChakraNode& node) {
  constexpr std::uint64_t kMostBytes = 1'000'000'000'000'000, kMostMicroseconds = 1'000'000'000'000;
  const auto refuse = [&](const std::string& what) {
    throw InputError(place(run, rank, node) + ": " + what);
  };
  const std::int64_t ranks = run.files.size();
  if (node.type > ChakraNode::Type::collective)
    refuse(fmt::format("nodes of type {} cannot be replayed", static_cast<int>(node.type)));
  if (node.microseconds > kMostMicroseconds)
    refuse(fmt::format("expected at most {} us, got {}", kMostMicroseconds, node.microseconds));
  if (node.type == ChakraNode::Type::compute && node.microseconds == 0 && node.operations > 0)
    refuse(fmt::format("has {} operations and no duration: a replay needs its time", node.operations));
  const bool collective = node.type == ChakraNode::Type::collective;
  if (collective) check_collective(run, rank, node);
  const bool sized = node.has_size || (collective && node.collective == ChakraNode::Collective::barrier);
  if (node.type >= ChakraNode::Type::send && (!sized || node.bytes > kMostBytes))
    refuse(fmt::format("expected a comm_size from 0 to {}, got {}", kMostBytes,
                       sized ? std::to_string(node.bytes) : "none"));
  if (node.type != ChakraNode::Type::send && node.type != ChakraNode::Type::receive) return;
  const std::int64_t peer = node.type == ChakraNode::Type::send ? node.target : node.source;
  if (peer < 0 || peer >= ranks || peer == rank)
    refuse(fmt::format("expected another rank below {} at the other end, got {}", ranks, peer));
}

/// A message that a rank sends or expects: its sender, receiver and tag.
using Message = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

/// @throws InputError for a message that only one side knows, or to which the two give different sizes
void check_messages(const ChakraRun& run) {
  std::map<Message, std::multiset<std::uint64_t>> open;  // sizes of messages that are sent
  for (const bool sending : {true, false}) {
    for (std::size_t rank = 0; rank < run.nodes.size(); ++rank) {
      for (const ChakraNode& node : run.nodes[rank]) {
        const std::int64_t own = rank;
        if (node.type == ChakraNode::Type::send && sending)
          open[{own, node.target, node.tag}].insert(node.bytes);
        if (node.type != ChakraNode::Type::receive || sending) continue;
        auto& sizes = open[{node.source, own, node.tag}];
        const auto found = sizes.find(node.bytes);
        if (found == sizes.end())
          throw InputError(fmt::format("{}: rank {} sends no message of tag {} and {} bytes for it",
                                       place(run, rank, node), node.source, node.tag, node.bytes));
        sizes.erase(found);
      }
    }
  }
  for (const auto& [message, sizes] : open) {
    const auto& [source, target, tag] = message;
    if (!sizes.empty())
      throw InputError(fmt::format("{}: rank {} sends {} messages of tag {} that rank {} does not receive",
                                   run.files[source].string(), source, sizes.size(), tag, target));
  }
}

}  // namespace

ChakraRun read_chakra_run(const fs::path& folder) {
  ChakraRun run{trace_files(folder), {}};
  std::error_code error;
  if (fs::exists(folder / "comm_group.json", error)) run.groups = groups_of_file(folder / "comm_group.json");
  for (int rank = 0; rank < std::ssize(run.files); ++rank) {
    run.nodes.push_back(in_order(run, rank, read_chakra_trace(run.files[rank])));
    for (const ChakraNode& node : run.nodes.back()) {
      check_node(run, rank, node);
      if (node.type == ChakraNode::Type::metadata) add_process_groups(node.values, run.groups);
    }
  }
  if (std::ranges::all_of(run.nodes, [](const auto& nodes) { return nodes.empty(); }))
    throw InputError(fmt::format("{}: its traces hold no nodes", folder.string()));
  check_messages(run);
  return run;
}

std::vector<int> ranks_of(const ChakraRun& run, int rank, const ChakraNode& collective) {
  const int all = run.files.size();
  std::vector<int> ranks;
  const auto found = run.groups.find(collective.group);
  if (found != run.groups.end()) ranks = found->second;
  if (found == run.groups.end() && !collective.group.empty() && collective.group != "0")
    throw InputError(fmt::format("{}: expected a group of comm_group.json, got \"{}\"",
                                 place(run, rank, collective), printable(collective.group)));
  if (ranks.empty()) {
    ranks.resize(all);
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  std::ranges::sort(ranks);
  const bool valid =
      std::ranges::adjacent_find(ranks) == ranks.end() && ranks.front() >= 0 && ranks.back() < all;
  if (!valid || !std::ranges::binary_search(ranks, rank))
    throw InputError(fmt::format("{}: expected a group of ranks below {}, with rank {}, got {}",
                                 place(run, rank, collective), all, rank, fmt::join(ranks, " ")));
  return ranks;
}

}  // namespace stepcast
