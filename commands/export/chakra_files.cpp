#include "commands/export/chakra_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/os/files.hpp"
#include "models/chakra/chakra_trace.hpp"

namespace stepcast {
namespace {

/// A message of a schedule, as one of its ranks sees it.
struct Transfer {
  int round = 0;
  bool sends = false;
  int peer = 0;      ///< rank in the group
  double share = 0;  ///< of the buffer
};

/// The messages of every rank of a schedule, by round.
std::vector<std::vector<Transfer>> transfers_of(const Schedule& schedule) {
  std::vector<std::vector<Transfer>> transfers(schedule.ranks);
  int first = 0;
  for (const Phase& phase : schedule.phases) {
    for (int round = 0; round < phase.rounds; ++round) {
      for (const Edge& edge : *phase.edges) {
        if (round < edge.delay || round >= edge.delay + phase.active) continue;
        const double share = 1.0 * phase.unit * edge.chunks / schedule.parts;
        transfers[edge.source].push_back({first + round, true, edge.target, share});
        transfers[edge.target].push_back({first + round, false, edge.source, share});
      }
    }
    first += phase.rounds;
  }
  return transfers;
}

/// The collectives that ASTRA-sim simulates (astra-sim/workload/Workload.cc, issue_coll_comm).
std::optional<ChakraNode::Collective> simulated_kind(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::all_reduce:
      return ChakraNode::Collective::all_reduce;
    case Collective::Kind::reduce_scatter:
      return ChakraNode::Collective::reduce_scatter;
    case Collective::Kind::all_gather:
      return ChakraNode::Collective::all_gather;
    case Collective::Kind::all_to_all:
      return ChakraNode::Collective::all_to_all;
    default:
      return std::nullopt;
  }
}

/// What all ranks of a run share: groups by name, and the messages of collectives.
class SharedFacts {
 public:
  explicit SharedFacts(const Plan& plan) : plan_(plan) {
    for (const Communicator& one : plan.communicators) {
      auto& position = positions_.emplace_back();
      for (std::size_t i = 0; i < one.ranks.size(); ++i) position[one.ranks[i].value] = i;
    }
  }

  const Plan& plan() const { return plan_; }
  const std::map<std::vector<int>, int>& groups() const { return numbers_; }
  int position(CommunicatorId communicator, int rank) const {
    return positions_[communicator.index()].at(rank);
  }

  /// The name of a group for `pg_name`; empty where it has all ranks of the run.
  const std::string& group_name(CommunicatorId communicator, int group) {
    const auto [known, is_new] = names_.try_emplace({communicator.index(), group});
    if (!is_new) return known->second;
    std::vector<int> ranks = ranks_of(communicator, group);
    if (ranks.size() == plan_.endpoints.size()) return known->second;
    const int next = numbers_.size() + 1;  // group 0 of ASTRA-sim has all ranks
    known->second = std::to_string(numbers_.try_emplace(std::move(ranks), next).first->second);
    return known->second;
  }

  const std::vector<std::vector<Transfer>>& transfers(CollectiveId id) {
    const auto [known, is_new] = transfers_.try_emplace(id.index());
    if (is_new) {
      const Collective& one = plan_.collectives[id.index()];
      const Communicator& communicator = communicator_of(plan_, one);
      known->second = transfers_of(
          *schedule_of(one, communicator.all_reduce, {communicator.size, communicator.ranks_per_node}));
    }
    return known->second;
  }

 private:
  std::vector<int> ranks_of(CommunicatorId number, int group) const {
    const Communicator& one = plan_.communicators[number.index()];
    std::vector<int> ranks;
    for (int i = 0; i < one.size; ++i) ranks.push_back(one.ranks[group * one.size + i].value);
    std::ranges::sort(ranks);
    return ranks;
  }

  const Plan& plan_;
  std::vector<std::map<int, int>> positions_;  ///< by communicator and rank
  std::map<std::pair<std::size_t, int>, std::string> names_;
  std::map<std::vector<int>, int> numbers_;
  std::map<std::size_t, std::vector<std::vector<Transfer>>> transfers_;  ///< by collective
};

std::uint64_t whole_bytes(double bytes) {
  return std::max<long long>(std::llround(bytes), 1);
}

/// Writes the nodes of one rank.
class RankTrace {
 public:
  RankTrace(SharedFacts& shared, const ProgramLog& log, int member,
            const std::function<void(const ChakraNode&)>& write)
      : shared_(shared),
        log_(log),
        member_(member),
        rank_(shared.plan().roles[log.role.index()].rank(member).value),
        write_(write) {}

  void write() {
    ends_.resize(log_.operations.size());
    for (std::size_t i = 0; i < log_.operations.size(); ++i) add(log_.operations[i], ends_[i]);
  }
  std::int64_t nodes() const { return next_ - 1; }
  std::int64_t messages_of_collectives() const { return messages_of_collectives_; }

 private:
  using Ids = std::vector<std::uint64_t>;

  /// The nodes with which the operations before this one end.
  Ids nodes_before(const LoggedOperation& operation) const {
    Ids before;
    for (const std::int64_t earlier : operation.after) {
      const Ids& own = ends_[earlier];
      before.insert(before.end(), own.begin(), own.end());
    }
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    return before;
  }

  std::uint64_t put(ChakraNode node) {
    node.id = next_++;
    write_(node);
    return node.id;
  }

  /// A node that lasts this long; the rounding of the earlier ones is made up for.
  std::uint64_t put_work(const std::string& name, double seconds, bool on_host, Ids after) {
    double& total = on_host ? host_ : device_;
    const auto before = std::llround(1e6 * total);
    total += seconds;
    ChakraNode node;
    node.name = name;
    node.type = ChakraNode::Type::compute;
    node.after = std::move(after);
    node.microseconds = std::llround(1e6 * total) - before;
    node.on_host = on_host;
    return put(std::move(node));
  }

  /// @param ends  the nodes with which it ends: those before it, where it takes no time here
  void add(const LoggedOperation& operation, Ids& ends) {
    ends = nodes_before(operation);
    switch (operation.kind) {
      case LoggedOperation::Kind::compute:
      case LoggedOperation::Kind::host:
        if (operation.seconds > 0)
          ends = {put_work(operation.name, operation.seconds, operation.kind == LoggedOperation::Kind::host,
                           std::move(ends))};
        return;
      case LoggedOperation::Kind::collective:
        return add_collective(operation, ends);
      case LoggedOperation::Kind::send:
      case LoggedOperation::Kind::receive:
        if (operation.sent >= 0) ends = {put(message_node(operation, std::move(ends)))};
        return;
    }
  }

  ChakraNode message(bool sends, int peer, double bytes, Ids after) const {
    ChakraNode node;
    node.name = sends ? "send" : "receive";
    node.type = sends ? ChakraNode::Type::send : ChakraNode::Type::receive;
    node.after = std::move(after);
    node.on_host = false;
    node.bytes = whole_bytes(bytes);
    node.source = sends ? rank_ : peer;
    node.target = sends ? peer : rank_;
    return node;
  }

  /// The tag is the number of the send in its sender's program, which no other message of the two ranks has.
  ChakraNode message_node(const LoggedOperation& operation, Ids after) const {
    const Role& role = shared_.plan().roles[operation.peer.index()];
    const int peer = role.rank(role.members == 1 ? 0 : member_).value;
    ChakraNode node = message(operation.kind == LoggedOperation::Kind::send, peer,
                              operation.message.buffer.size.value, std::move(after));
    node.tag = operation.sent;
    return node;
  }

  void add_collective(const LoggedOperation& operation, Ids& ends) {
    const Collective& collective = shared_.plan().collectives[operation.collective.index()];
    const Communicator& communicator = communicator_of(shared_.plan(), collective);
    if (communicator.size == 1) return;
    if (collective.wait.value > 0)
      ends = {put_work("wait before a collective", collective.wait.value, true, std::move(ends))};
    const auto kind = simulated_kind(collective.kind);
    if (!kind) return add_messages(operation, ends);
    const bool puts_in_a_part =
        collective.kind == Collective::Kind::all_gather || collective.kind == Collective::Kind::all_to_all;
    ChakraNode node;
    node.name = collective_kind_names()[ordinal(collective.kind)];
    node.type = ChakraNode::Type::collective;
    node.after = std::move(ends);
    node.on_host = false;
    node.collective = *kind;
    node.bytes = whole_bytes(collective.buffer.size.value / (puts_in_a_part ? communicator.size : 1));
    node.group = shared_.group_name(collective.communicator,
                                    shared_.position(collective.communicator, rank_) / communicator.size);
    ends = {put(std::move(node))};
  }

  /// The messages of a collective. A rank enters a round when its own messages of the round before have
  /// ended.
  void add_messages(const LoggedOperation& operation, Ids& ends) {
    const Collective& collective = shared_.plan().collectives[operation.collective.index()];
    const Communicator& communicator = communicator_of(shared_.plan(), collective);
    const int position = shared_.position(collective.communicator, rank_);
    const int place = position % communicator.size, first = position - place;
    const std::int64_t calls = collective.communicator.index() * 1009 + operation.call;
    const std::int64_t first_tag = kCollectives + calls * 61 % kCollectives;
    Ids before = ends;
    int round = -1;
    for (const Transfer& one : shared_.transfers(operation.collective)[place]) {
      if (one.round != std::exchange(round, one.round)) before = std::exchange(ends, {});
      const int peer = communicator.ranks[first + one.peer].value;
      ChakraNode node = message(one.sends, peer, one.share * collective.buffer.size.value, before);
      node.tag = first_tag + one.round;
      ends.push_back(put(std::move(node)));
      ++messages_of_collectives_;
    }
  }

  static constexpr std::int64_t kCollectives = 1 << 29;  ///< tags from here on belong to collectives

  SharedFacts& shared_;
  const ProgramLog& log_;
  int member_, rank_;
  const std::function<void(const ChakraNode&)>& write_;
  std::vector<Ids> ends_;  ///< by operation
  double device_ = 0, host_ = 0;
  std::int64_t next_ = 1, messages_of_collectives_ = 0;
};

std::string groups_json(const std::map<std::vector<int>, int>& groups) {
  std::map<int, const std::vector<int>*> by_number;
  for (const auto& [ranks, number] : groups) by_number[number] = &ranks;
  std::string text = "{";
  for (const auto& [number, ranks] : by_number)
    text += fmt::format("{}\n  \"{}\": [{}]", number == 1 ? "" : ",", number, fmt::join(*ranks, ", "));
  return text + "\n}\n";
}

}  // namespace

ChakraFiles write_chakra_files(const std::filesystem::path& folder, const std::string& name, const Plan& plan,
                               const std::vector<ProgramLog>& programs) {
  SharedFacts shared(plan);
  ChakraFiles files;
  for (const ProgramLog& log : programs) {
    for (int member = log.first; member < log.first + log.members; ++member) {
      const int rank = plan.roles[log.role.index()].rank(member).value;
      write_chakra_trace(folder / fmt::format("{}.{}.et", name, rank), [&](const auto& write) {
        RankTrace trace(shared, log, member, write);
        trace.write();
        files.nodes += trace.nodes();
        files.messages_of_collectives += trace.messages_of_collectives();
      });
      ++files.ranks;
    }
  }
  files.groups = shared.groups().size();
  if (files.groups > 0) write_atomically(folder / "comm_group.json", groups_json(shared.groups()));
  return files;
}

}  // namespace stepcast
