#include "validate/roles.hpp"

namespace stepcast {

int role_of(const Plan& plan, int rank) {
  for (std::size_t role = 0; role < plan.roles.size(); ++role) {
    const int place = rank - plan.roles[role].first_rank;
    if (place >= 0 && place < plan.roles[role].members) return static_cast<int>(role);
  }
  return -1;
}

int training_ranks(const Plan& plan) {
  int ranks = 0;
  for (const Role& role : plan.roles) ranks += role.training ? role.members : 0;
  return ranks;
}

}  // namespace stepcast
