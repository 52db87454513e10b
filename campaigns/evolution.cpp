#include "campaigns/evolution.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace stepcast {
namespace {

double scaled(const Parameter& parameter, double value) {
  return parameter.logarithmic ? std::log(value) : value;
}

Values values_of(const Space& space, const std::vector<double>& genes) {
  Values values;
  for (std::size_t i = 0; i < space.size(); ++i) {
    double value = space[i].logarithmic ? std::exp(genes[i]) : genes[i];
    if (space[i].kind == Parameter::Kind::integer) value = std::round(value);
    if (space[i].kind != Parameter::Kind::choice) value = std::clamp(value, space[i].low, space[i].high);
    values.push_back(value);
  }
  return values;
}

double mutation_size(const Mutation& mutation) {
  const double left = 1 - 1.0 * mutation.generation / mutation.generations;
  return 1 - std::pow(mutation.r1, std::pow(left, 3));
}

/// Crosses over the genes of two parents and mutates the result. Uses random numbers `key.item` to `key.item`
/// + 2.
double gene(const Parameter& parameter, double fitter, double other, RandomKey key, Mutation mutation) {
  const auto [r, pick] = uniform_pair(key);
  ++key.item;
  const auto [r1, r2] = uniform_pair(key);
  mutation.r1 = r1;
  mutation.r2 = r2;
  if (parameter.kind == Parameter::Kind::choice) {
    ++key.item;
    const bool moves = pick < mutation_size(mutation);
    if (moves) return uniform_index(key, parameter.choices.size());
    return r < 0.5 ? fitter : other;
  }
  const double low = scaled(parameter, parameter.low), high = scaled(parameter, parameter.high);
  const double child = std::clamp(crossover(fitter, other, r), low, high);
  return std::clamp(mutated(child, low, high, mutation), low, high);
}

}  // namespace

int elite_count(int population) {
  return std::max(1, population / 5);
}

double crossover(double fitter, double other, double r) {
  return r * (fitter - other) + fitter;
}

double mutated(double child, double low, double high, const Mutation& mutation) {
  return child + mutation_size(mutation) * (mutation.r2 > 0.5 ? high - child : low - child);
}

Evolution::Evolution(Space space, EvolutionOptions options) : space_(std::move(space)), options_(options) {
  check(space_);
  if (options_.population < 3) throw std::invalid_argument("Evolution: population must be >= 3");
  if (options_.generations < 1) throw std::invalid_argument("Evolution: generations must be >= 1");
  for (int i = 0; i < options_.population; ++i) {
    Member member;
    const Values drawn =
        random_values(space_, {options_.seed, Purpose::proposal, 0, static_cast<std::uint32_t>(i), 0});
    for (std::size_t j = 0; j < space_.size(); ++j) member.genes.push_back(scaled(space_[j], drawn[j]));
    member.trial.values = drawn;
    members_.push_back(std::move(member));
  }
}

std::optional<Trial> Evolution::ask() {
  const bool whole =
      std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.evaluated; });
  if (whole) breed();
  const auto next =
      std::find_if(members_.begin(), members_.end(), [](const Member& m) { return !m.proposed; });
  if (next == members_.end()) return std::nullopt;
  next->proposed = true;
  next->trial.number = asked_++;
  return next->trial;
}

void Evolution::tell(const Trial& trial, double value) {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return member.proposed && !member.evaluated && member.trial.number == trial.number;
  });
  if (found == members_.end()) throw std::invalid_argument("Evolution: result for an unknown trial");
  found->evaluated = true;
  found->value = std::isfinite(value) ? value : -std::numeric_limits<double>::infinity();
}

void Evolution::breed() {
  generation_ =
      std::min(generation_ + 1, options_.generations);  // further generations mutate as the last one does
  std::stable_sort(members_.begin(), members_.end(),
                   [](const Member& a, const Member& b) { return a.value > b.value; });
  const int elite = elite_count(options_.population);
  std::vector<Member> next(members_.begin(), members_.begin() + elite);
  for (int i = elite; i < options_.population; ++i) {
    next.push_back(child(members_, asked_ + i));
  }
  members_ = std::move(next);
}

Evolution::Member Evolution::child(const std::vector<Member>& parents, std::uint32_t index) const {
  const auto winner = [&](std::uint32_t which) -> const Member& {
    const RandomKey key{options_.seed, Purpose::breeding, index, which, 0};
    const auto [first, second] = uniform_pair(key);
    const std::size_t count = parents.size();
    const auto a = std::min<std::size_t>(first * count, count - 1);
    auto b = std::min<std::size_t>(second * (count - 1), count - 2);
    if (b >= a) ++b;  // a member other than `a`, each equally likely
    return parents[a].value >= parents[b].value ? parents[a] : parents[b];
  };
  const Member *fitter = &winner(0), *other = &winner(1);
  if (other->value > fitter->value) std::swap(fitter, other);
  const Mutation mutation{0, 0, generation_, options_.generations};
  Member member;
  for (std::size_t i = 0; i < space_.size(); ++i) {
    const RandomKey key{options_.seed, Purpose::breeding, index, 2, static_cast<std::uint32_t>(3 * i)};
    member.genes.push_back(gene(space_[i], fitter->genes[i], other->genes[i], key, mutation));
  }
  member.trial.values = values_of(space_, member.genes);
  return member;
}

}  // namespace stepcast
