#include "campaigns/option_search.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "campaigns/search_method.hpp"
#include "problems.hpp"

using namespace stepcast;

TEST_CASE("position_of is the inverse of value_at", "[campaigns]") {
  const Parameter plain{.name = "p", .low = -2, .high = 6};
  const Parameter logarithmic{.name = "q", .low = 1, .high = 1000, .logarithmic = true};
  for (const double u : {0.0, 0.25, 0.5, 1.0}) {
    CHECK(position_of(plain, value_at(plain, u)) == Approx(u).margin(1e-12));
    CHECK(position_of(logarithmic, value_at(logarithmic, u)) == Approx(u).margin(1e-12));
  }
  CHECK(value_at(plain, 0.5) == Approx(2));
  CHECK(value_at(logarithmic, 1.0 / 3) == Approx(10));
}

TEST_CASE("every whole number and every word is drawn equally often", "[campaigns]") {
  const Space space{{.name = "n", .kind = Parameter::Kind::integer, .low = 3, .high = 6},
                    {.name = "w", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c", "d"}}};
  std::map<double, int> numbers, words;
  constexpr int kDraws = 40'000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const Values values = random_values(space, {1, Purpose::proposal, 0, i, 0});
    ++numbers[values[0]];
    ++words[values[1]];
  }
  CHECK(numbers.size() == 4);
  CHECK(words.size() == 4);
  const double error = 5 * std::sqrt(kDraws * 0.25 * 0.75);  // five standard errors of a count
  for (const auto& [value, count] : numbers) CHECK(count == Approx(kDraws / 4).margin(error));
  for (const auto& [value, count] : words) CHECK(count == Approx(kDraws / 4).margin(error));
}

TEST_CASE("two different words are at distance 1", "[campaigns]") {
  const Space space{{.name = "x", .low = 0, .high = 2},
                    {.name = "w", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c"}}};
  const auto one = features(space, {1, 0}), other = features(space, {1, 2});
  REQUIRE(one.size() == 4);
  CHECK(one[0] == 0.5);
  double square = 0;
  for (std::size_t i = 0; i < 4; ++i) square += (one[i] - other[i]) * (one[i] - other[i]);
  CHECK(square == Approx(1));
}

TEST_CASE("points are counted, and invalid spaces are refused", "[campaigns]") {
  const Parameter whole{.name = "n", .kind = Parameter::Kind::integer, .low = 1, .high = 8};
  const Parameter word{.name = "w", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c"}};
  CHECK(point_count({whole, word}) == 24);
  CHECK(std::isinf(point_count({whole, {.name = "x"}})));
  CHECK_THROWS_WITH(check(Space{}), "a space needs at least one parameter");
  CHECK_THROWS_WITH(check(Space{{.name = "x", .low = 1, .high = 0}}),
                    "parameter x: the lower end of the range is above the upper end");
  CHECK_THROWS_WITH(check(Space{{.name = "x", .low = 0, .high = 1, .logarithmic = true}}),
                    "parameter x: a logarithmic range must be > 0");
  CHECK_THROWS_WITH(check(Space{{.name = "w", .kind = Parameter::Kind::choice}}),
                    "parameter w: expected at least one word to choose from");
}

// A search as a campaign: who knows what at which simulated time.

namespace {

Campaign campaign_of(int groups, int optimizers, bool shared) {
  Campaign campaign;
  campaign.points = 24;
  campaign.groups = groups;
  campaign.folds = 3;
  campaign.folds_at_once = 2;
  campaign.training_devices = 2;
  campaign.optimizers = optimizers;
  campaign.shared_history = shared;
  campaign.cost = {{0.5}, {1e-4}};
  campaign.seed = 3;
  return campaign;
}

/// Durations that differ by point and fold, so that points end in another order than they start.
std::vector<Seconds> folds_of(const Values& values) {
  std::vector<Seconds> folds;
  for (int fold = 0; fold < 3; ++fold) folds.push_back({4 + values[1] + 0.3 * fold * std::abs(values[0])});
  return folds;
}

double merit(const Values& values) {
  return values[1] > 14 ? std::nan("") : -branin(values[0], values[1]);
}

CampaignSearch run(const Campaign& campaign, SearchMethod method) {
  CampaignSearch search(campaign, branin_space(), method);
  while (const auto values = search.next()) search.ended(folds_of(*values), merit(*values), 0);
  return search;
}

/// What an optimizer proposes that is told, before every proposal, all results of `trials` that ended by
/// then.
std::vector<Values> proposals(std::vector<CampaignTrial> trials, OptionSearch& search) {
  std::vector<Values> all;
  std::vector<CampaignTrial> running;
  for (const CampaignTrial& one : trials) {
    std::ranges::stable_sort(running, {}, [](const CampaignTrial& other) { return other.end; });
    std::erase_if(running, [&](const CampaignTrial& other) {
      if (other.end > one.proposal.asked) return false;
      search.tell(other.trial, other.merit);
      return true;
    });
    const auto asked = search.ask();
    REQUIRE(asked);
    all.push_back(asked->values);
    running.push_back(one);
    running.back().trial = *asked;
  }
  return all;
}

}  // namespace

TEST_CASE("a proposal knows the results that have ended at its simulated time, and no others",
          "[campaigns]") {
  const SearchMethod method =
      GENERATE(SearchMethod::bayesian, SearchMethod::evolution, SearchMethod::random, SearchMethod::direct);
  const int groups = GENERATE(1, 5), optimizers = GENERATE(1, 3);
  Campaign campaign = campaign_of(groups, optimizers, true);
  if (method == SearchMethod::evolution) campaign.generation = 6;
  if (method != SearchMethod::bayesian) campaign.cost = {};
  CAPTURE(ordinal(method), groups, optimizers);
  const auto trials = run(campaign, method).trials();
  REQUIRE(trials.size() == 24);
  SearchOptions options{.method = method, .evaluations = 24, .population = campaign.generation, .seed = 3};
  const auto values = proposals(trials, *make_optimizer(branin_space(), options));
  for (std::size_t i = 0; i < trials.size(); ++i) CHECK(values[i] == trials[i].trial.values);
}

TEST_CASE("with histories of their own, optimizers know the results of their groups alone", "[campaigns]") {
  const Campaign campaign = campaign_of(4, 2, false);
  const auto trials = run(campaign, SearchMethod::bayesian).trials();
  for (int number = 0; number < 2; ++number) {
    std::vector<CampaignTrial> own;
    std::ranges::copy_if(trials, std::back_inserter(own),
                         [&](const CampaignTrial& one) { return one.proposal.optimizer == number; });
    CHECK(std::ranges::all_of(own, [&](const auto& one) { return one.proposal.group % 2 == number; }));
    SearchOptions options{.evaluations = 12, .seed = 3 + 1'000'003ULL * static_cast<std::uint64_t>(number)};
    const auto values = proposals(own, *make_optimizer(branin_space(), options));
    for (std::size_t i = 0; i < own.size(); ++i) CHECK(values[i] == own[i].trial.values);
  }
}

TEST_CASE("every second of a searched campaign's devices is busy or idle for one reason", "[campaigns]") {
  const SearchMethod method =
      GENERATE(SearchMethod::bayesian, SearchMethod::evolution, SearchMethod::random, SearchMethod::direct);
  const bool shared = GENERATE(true, false);
  Campaign campaign = campaign_of(4, 2, shared);
  if (method == SearchMethod::evolution) campaign.generation = 6;
  const CampaignTimes times = run(campaign, method).times();
  const double idle =
      times.idle_optimizer + times.idle_fold + times.idle_generation + times.idle_tail + times.idle_driver;
  CHECK(times.busy + idle == Approx(times.devices * times.makespan.value).epsilon(1e-12));
  const bool waits = method == SearchMethod::evolution || method == SearchMethod::direct;
  CHECK((times.idle_generation > 0) == waits);
}

TEST_CASE("random points of equal duration end when the schedule of drawn durations says", "[campaigns]") {
  Campaign campaign = campaign_of(5, 2, true);
  campaign.training = {7};
  CampaignSearch search(campaign, branin_space(), SearchMethod::random);
  while (search.next()) search.ended({{7}, {7}, {7}}, 0, 0);
  const CampaignTimes expected = campaign_times(campaign);
  CHECK(search.times().makespan == expected.makespan);
  CHECK(search.times().idle_tail == expected.idle_tail);
}
