#include "strategies/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "models/chakra/chakra_run.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/replay/replayed_rank.hpp"

namespace stepcast {
namespace {

Collective::Kind replayed_kind(ChakraNode::Collective kind) {
  switch (kind) {
    case ChakraNode::Collective::reduce:
      return Collective::Kind::reduce;
    case ChakraNode::Collective::all_gather:
      return Collective::Kind::all_gather;
    case ChakraNode::Collective::broadcast:
      return Collective::Kind::broadcast;
    case ChakraNode::Collective::all_to_all:
      return Collective::Kind::all_to_all;
    case ChakraNode::Collective::reduce_scatter:
    case ChakraNode::Collective::reduce_scatter_block:
      return Collective::Kind::reduce_scatter;
    default:  // a barrier is an all-reduce of one number
      return Collective::Kind::all_reduce;
  }
}

/// Makes the plan of a run: a communicator for each group, a collective for each kind and size, and the nodes
/// of each rank.
class Replayer {
 public:
  Replayer(const ChakraRun& run, const Platform& platform, const CommunicationOptions& communication,
           double compute_factor, Plan& plan)
      : run_(run), platform_(platform), communication_(communication), factor_(compute_factor), plan_(plan) {
    // A pause of a host is a collective of one rank, which begins after a wait and takes no time itself.
    hosts_ = add(plan_, communicator(platform_, plan_.endpoints, first_ranks(plan_.workers), 1));
  }

  ReplayedRank rank(int number) {
    ReplayedRank rank;
    const auto& nodes = run_.nodes[number];
    std::unordered_map<std::uint64_t, int> index;
    for (const ChakraNode& node : nodes) {
      const int own = rank.nodes.size();
      index.emplace(node.id, own);
      rank.nodes.push_back(replayed(number, node));
      rank.nodes.back().after = node.after.size();
      for (const std::uint64_t earlier : node.after) rank.nodes[index.at(earlier)].next.push_back(own);
      if (node.type == ChakraNode::Type::collective) call(number, node, own, rank);
    }
    return rank;
  }

  /// Refuses groups whose ranks have different collectives.
  void check_calls(const std::vector<ReplayedRank>& ranks) const {
    for (const auto& [members, number] : communicators_) {
      const auto calls_of = [&, number = number](int rank) {
        const ReplayedRank& own = ranks[rank];
        std::vector<CollectiveId> calls;
        if (number.index() >= own.calls.size()) return calls;
        for (const int i : own.calls[number.index()]) calls.push_back(own.nodes[i].collective);
        return calls;
      };
      const auto expected = calls_of(members.front());
      for (const int rank : members) {
        if (calls_of(rank) != expected)
          throw InputError(fmt::format("{}: expected the same {} collectives of the group of ranks {} as {}",
                                       run_.files[rank].string(), expected.size(), fmt::join(members, " "),
                                       run_.files[members.front()].string()));
      }
    }
  }

  /// What the replay leaves out; empty if nothing.
  std::string left_out() const {
    return memory_nodes_ == 0
               ? ""
               : fmt::format("{} loads and stores of remote memory take no time", memory_nodes_);
  }

 private:
  ReplayedNode replayed(int rank, const ChakraNode& node) {
    ReplayedNode made;
    made.name = node.name;
    const double seconds = 1e-6 * node.microseconds;
    switch (node.type) {
      case ChakraNode::Type::compute:
        if (node.microseconds == 0) break;
        made.kind = node.on_host ? ReplayedNode::Kind::host : ReplayedNode::Kind::device;
        made.duration = {factor_ * seconds};
        if (node.on_host) made.collective = collective(hosts_, Collective::Kind::all_reduce, 0, seconds);
        break;
      case ChakraNode::Type::collective:
        made.kind = ReplayedNode::Kind::collective;
        break;
      case ChakraNode::Type::send:
      case ChakraNode::Type::receive:
        set_message(rank, node, made);
        break;
      case ChakraNode::Type::mem_load:
      case ChakraNode::Type::mem_store:
        ++memory_nodes_;
        break;
      default:
        break;
    }
    return made;
  }

  void set_message(int rank, const ChakraNode& node, ReplayedNode& made) {
    const bool sends = node.type == ChakraNode::Type::send;
    made.kind = sends ? ReplayedNode::Kind::send : ReplayedNode::Kind::receive;
    made.peer = RoleId(sends ? node.target : node.source);
    made.message.tag = MessageTag(node.tag);
    made.message.buffer.size = {static_cast<double>(node.bytes)};
    if (sends && channels_.emplace(rank, made.peer.value).second)
      plan_.channels.emplace_back(RoleId(rank), made.peer);
  }

  void call(int rank, const ChakraNode& node, int own, ReplayedRank& made) {
    const std::vector<int> members = ranks_of(run_, rank, node);
    const auto [known, is_new] = communicators_.try_emplace(members, CommunicatorId{0});
    if (is_new) {
      std::vector<RankId> ranks;
      for (const int member : members) ranks.emplace_back(member);
      Communicator one = communicator(platform_, plan_.endpoints, std::move(ranks), members.size());
      apply(communication_, one);
      known->second = add(plan_, std::move(one));
    }
    const Collective::Kind kind = replayed_kind(node.collective);
    const bool puts_in_a_part = kind == Collective::Kind::all_gather || kind == Collective::Kind::all_to_all;
    double bytes = node.bytes * (puts_in_a_part ? members.size() : 1);
    if (node.collective == ChakraNode::Collective::barrier) bytes = 4;
    ReplayedNode& replayed = made.nodes[own];
    replayed.communicator = known->second;
    replayed.collective = collective(known->second, kind, bytes, 0);
    made.calls.resize(std::max(made.calls.size(), known->second.index() + 1));
    made.calls[known->second.index()].push_back(own);
  }

  CollectiveId collective(CommunicatorId group, Collective::Kind kind, double bytes, double wait) {
    const auto [known, is_new] = collectives_.try_emplace({group.index(), kind, bytes, wait});
    if (is_new) {
      Collective one{kind, group, {Array::none, {}, {bytes}}, nullptr};
      one.wait = {wait};
      known->second = add(plan_, std::move(one));
    }
    return known->second;
  }

  const ChakraRun& run_;
  const Platform& platform_;
  const CommunicationOptions& communication_;
  double factor_;
  Plan& plan_;
  CommunicatorId hosts_{0};
  std::map<std::vector<int>, CommunicatorId> communicators_;  ///< by their ranks
  std::map<std::tuple<std::size_t, Collective::Kind, double, double>, CollectiveId> collectives_;
  std::set<std::pair<int, int>> channels_;
  int memory_nodes_ = 0;
};

/// One all-reduce after a millisecond of compute on every rank, for a first try.
ChakraRun example_run(int ranks) {
  ChakraNode compute{
      .id = 1, .name = "compute", .type = ChakraNode::Type::compute, .after = {}, .microseconds = 1000};
  compute.on_host = false;
  ChakraNode sum{.id = 2, .name = "sum", .type = ChakraNode::Type::collective, .after = {1}};
  sum.bytes = 25 << 20;
  ChakraRun run{{}, std::vector(ranks, std::vector{compute, sum}), {}};
  for (int rank = 0; rank < ranks; ++rank) run.files.emplace_back(fmt::format("example.{}.et", rank));
  return run;
}

const Keys& replay_keys() {
  static const Keys keys = joined_keys({training_keys(),
                                        communication_keys(),
                                        {{"traces", KeyType::path, "required",
                                          "folder with a Chakra trace of each rank, *.RANK.et, and "
                                          "comm_group.json where ranks have groups; or "
                                          "example: one all-reduce after a millisecond of compute"}}});
  return keys;
}

ChakraRun read_run(const YamlValue& traces, int workers) {
  if (traces.text() == "example") return example_run(workers);
  ChakraRun run = read_chakra_run(traces.text());
  if (std::ssize(run.files) != workers)
    traces.refuse(
        fmt::format("has the traces of {} ranks; give workers: {}", run.files.size(), run.files.size()));
  return run;
}

Plan read_replay(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, replay_keys());
  const TrainingOptions training = read_training_options(map);
  refuse_compression(map, "not supported with kind: replay, which sends the bytes of the traces");
  const ChakraRun run = read_run(map.at("traces", "a folder of Chakra traces"), setting.workers());
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), 1);
  Plan plan;
  plan.endpoints = setting.devices;
  plan.workers = plan.devices = setting.workers();
  plan.workloads.emplace_back();
  plan.simulated_only = "traces of another program are replayed in simulations";
  const CommunicationOptions communication = read_communication(map);
  Replayer replayer(run, setting.platform, communication, training.compute_factor, plan);
  std::vector<ReplayedRank> ranks;
  for (int rank = 0; rank < plan.workers; ++rank) ranks.push_back(replayer.rank(rank));
  replayer.check_calls(ranks);
  for (int rank = 0; rank < plan.workers; ++rank) {
    auto own = std::make_shared<const ReplayedRank>(std::move(ranks[rank]));
    plan.roles.push_back(
        {fmt::format("rank {}", rank), RankId(rank), 1, 0, true,
         [own, steps = setting.steps](Worker& worker) { return replay(worker, *own, steps); }});
  }
  const MemoryOptions memory = memory_options(setting, training, batch);
  finish_plan(setting, training,
              {{"replayed", {}},
               batch,
               static_cast<double>(batch) * setting.workers(),
               training_memory(setting.model, memory),
               "strategy.traces"},
              plan);
  if (const std::string left = replayer.left_out(); !left.empty()) plan.flags.push_back("left out: " + left);
  plan.flags.emplace_back(
      "memory and samples are those of the scenario's network, which the traces do not hold");
  return plan;
}

}  // namespace

Strategy replay_strategy() {
  return {
      .kind = "replay",
      .what = "replays Chakra execution traces, one of each rank, on another platform",
      .source =
          "S. Sridharan et al., Chakra: advancing performance benchmarking and co-design using standardized "
          "execution traces, arXiv:2305.14516",
      .plan = read_replay,
      .keys = replay_keys(),
      .example = "{kind: replay, traces: example}",
      .example_model = "small-cnn"};
}

}  // namespace stepcast
