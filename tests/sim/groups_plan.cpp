#include "tests/sim/groups_plan.hpp"

namespace stepcast {

Program follow(Worker& worker, const std::vector<Action>& actions) {
  std::vector<Pending> started;
  for (const Action& action : actions) {
    const int number = action.number;
    const LayerRange layer{number, number + 1};
    const CollectiveId collective(number);
    const RoleId role(number);
    Message message;
    message.tag = MessageTag{1};
    message.buffer.size = {action.bytes};
    switch (action.what) {
      case Action::forward:
        co_await worker.forward(layer);
        break;
      case Action::backward:
        co_await worker.backward(layer);
        break;
      case Action::sum:
        co_await worker.collective(collective);
        break;
      case Action::start_sum:
        started.push_back(worker.start_collective(collective));
        break;
      case Action::send:
        started.push_back(worker.start_send(role, message));
        break;
      case Action::receive:
        co_await worker.receive(MessageTag(1), role);
        break;
    }
  }
  for (Pending& one : started) co_await worker.finished(std::move(one));
  worker.end_step();
}

}  // namespace stepcast
