#include "strategies/parameter_server/server.hpp"

#include <algorithm>
#include <utility>

#include "strategies/arithmetic/model_updates.hpp"

namespace stepcast {
namespace {

bool is_update(const Message& request) {
  return request.buffer.array != Array::none;
}

}  // namespace

UpdatePolicy::UpdatePolicy(ServerRules rules) : rules_(std::move(rules)) {
  for (const RoleId client : rules_.clients) clocks_[client] = 0;
}

const UpdatePolicy::Outcome& UpdatePolicy::arrived(const Message& request) {
  Outcome& outcome = outcome_;
  std::vector<RoleId> answers = std::move(outcome.answers);
  answers.clear();
  outcome = {.answers = std::move(answers)};
  switch (rules_.mode) {
    case ServerRules::Mode::asynchronous:
      arrived_asynchronous(request, outcome);
      break;
    case ServerRules::Mode::synchronous:
      arrived_synchronous(request, outcome);
      break;
    case ServerRules::Mode::bounded_staleness:
      arrived_bounded(request, outcome);
      break;
  }
  return outcome;
}

void UpdatePolicy::arrived_asynchronous(const Message& request, Outcome& outcome) {
  if (is_update(request)) {
    outcome.accepted = outcome.applied = true;
    outcome.staleness = version_++ - request.value;
  }
  if (request.answered) outcome.answers.push_back(request.from);
}

void UpdatePolicy::arrived_synchronous(const Message& request, Outcome& outcome) {
  const bool late = request.value < version_;
  if (late || version_ >= rules_.versions) {
    outcome.dropped = is_update(request);
    outcome.answers.push_back(request.from);
    return;
  }
  outcome.accepted = true;
  waiting_.push_back(request.from);
  if (++taken_ < rules_.take) return;
  outcome.applied = true;
  outcome.answers = std::exchange(waiting_, {});
  taken_ = 0;
  ++version_;
}

void UpdatePolicy::arrived_bounded(const Message& request, Outcome& outcome) {
  if (is_update(request)) {
    outcome.accepted = outcome.applied = true;
    outcome.staleness = version_++ - request.value;
    ++clocks_.at(request.from);
  }
  if (request.answered) waiting_.push_back(request.from);
  const int slowest = std::min_element(clocks_.begin(), clocks_.end(), [](const auto& a, const auto& b) {
                        return a.second < b.second;
                      })->second;
  const auto may_go = [&](RoleId client) { return clocks_.at(client) - slowest <= rules_.bound; };
  const auto held = std::stable_partition(waiting_.begin(), waiting_.end(), may_go);
  outcome.answers.assign(waiting_.begin(), held);
  waiting_.erase(waiting_.begin(), held);
  for (const RoleId client : outcome.answers) lead_ = std::max(lead_, clocks_.at(client) - slowest);
}

namespace {

/// The elements of the server that a request is about.
Slice elements_of(const Server& options, const Message& request) {
  return options.apply_slice ? request.buffer.elements : options.elements;
}

double share_of_server(const Server& options, const Slice& elements) {
  return options.apply_slice ? 1.0 * elements.size() / options.elements.size() : 1;
}

Message weights(const Server& options, const Slice& elements, int version) {
  Message message;
  message.tag = kWeights;
  message.buffer = {Array::parameters, elements, share_of_server(options, elements) * options.size};
  message.parts = options.apply_slice ? 1 : options.parts;
  message.value = version;
  return message;
}

/// @param first  the update is the first of its client
void record(Worker& worker, const Server& options, const UpdatePolicy::Outcome& outcome, bool first,
            int lead) {
  if (outcome.dropped) worker.record("dropped", 1);
  if (!outcome.accepted || !options.leaf) return;
  worker.record(first ? "first_staleness" : "staleness", outcome.staleness);
  if (options.rules.mode == ServerRules::Mode::bounded_staleness) worker.record("lead", lead);
}

/// @returns whether a role is new in `known`, and adds it
bool is_new(std::vector<bool>& known, RoleId role) {
  const std::size_t place = role.index();
  if (place >= known.size()) known.resize(place + 1, false);
  if (known[place]) return false;
  known[place] = true;
  return true;
}

/// `apply` or `add`, for the elements of a request.
LocalWork work_on(const Server& options, const LocalWork& whole, const Slice& elements) {
  LocalWork work{whole.name, share_of_server(options, elements) * whole.duration, {}};
  if (&whole == &options.apply) {
    work.run = [&options, elements](Arrays& arrays) { options.apply_slice(arrays, elements); };
  } else {
    work.run = [elements](Arrays& arrays) {
      accumulate(arrays.of(Array::update, elements), arrays.of(Array::gradients, elements));
    };
  }
  return work;
}

}  // namespace

/// A serial server asks its client for the update.
SubProgram receive_update(Worker& worker, Message& request) {
  Message grant;
  grant.tag = kGrant;
  co_await worker.send(request.from, grant);
  request = co_await worker.receive(kRequest, request.from, Array::update);
}

SubProgram sync_with_parent(Worker& worker, const Server& options, ClientState& parent,
                            UpdatePolicy& policy) {
  if (options.pull.run) {
    const ClientExchange models{Array::parameters, Array::center};
    co_await exchange(worker, options.parent, models, parent);
    co_await worker.local(options.pull);
  } else {
    const ClientExchange gradients{Array::gradients, Array::parameters};
    co_await exchange(worker, options.parent, gradients, parent);
  }
  policy.set_version(static_cast<int>(parent.version()));
}

Program serve(Worker& worker, const Server& options) {
  std::map<std::int64_t, UpdatePolicy> policies;  // by the first element; one without apply_slice
  ClientState parent;
  const bool sub_master = !options.parent.shards.empty();
  std::vector<bool> known;  // roles whose first update has arrived
  int applied = 0;
  for (;;) {
    // 1.
    Message request = co_await worker.receive(options.serial ? kBegin : kRequest, kAnyone, Array::update);
    worker.mark(options.top ? "server_idle" : "sub_master_idle");
    if (options.serial && is_update(request)) co_await receive_update(worker, request);
    // 2.
    const Slice elements = elements_of(options, request);
    UpdatePolicy& policy = policies.try_emplace(elements.begin, options.rules).first->second;
    const UpdatePolicy::Outcome& outcome = policy.arrived(request);
    const bool first = outcome.accepted && is_new(known, request.from);
    record(worker, options, outcome, first, policy.lead());
    // 3.
    if (outcome.accepted && options.restore.run) co_await worker.local(options.restore);
    LocalWork slice_add, slice_apply;
    if (options.apply_slice) {
      slice_add = work_on(options, options.add, elements);
      slice_apply = work_on(options, options.apply, elements);
    }
    const LocalWork& add = options.apply_slice ? slice_add : options.add;
    const LocalWork& apply = options.apply_slice ? slice_apply : options.apply;
    if (outcome.accepted && add.run) co_await worker.local(add);
    if (outcome.accepted && sub_master && !options.pull.run)  // the parent gets the sum, in `gradients`
      co_await worker.local(
          add_array(Array::update, Array::gradients, applied % options.parent_every == 0, options.array));
    if (outcome.applied) ++applied;
    if (outcome.applied && !options.answer_first) co_await worker.local(apply);
    if (outcome.applied && sub_master && applied % options.parent_every == 0)
      co_await sync_with_parent(worker, options, parent, policy);
    // 4.
    for (const RoleId role : outcome.answers) {
      const Message answer = weights(options, elements, policy.version());
      const Pending sent = worker.start_send(role, answer);
      if (options.serial) co_await worker.finished(sent);
    }
    if (outcome.applied && options.answer_first) co_await worker.local(apply);
    if (outcome.applied && options.validate_every > 0 && applied % options.validate_every == 0)
      co_await worker.pause(options.validation);
    if (outcome.accepted && options.top) worker.record("applied", 1);
    worker.mark(options.top ? "server_busy" : "sub_master_busy");
  }
}

}  // namespace stepcast
