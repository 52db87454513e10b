#include <catch2/catch.hpp>
#include <numeric>

#include "campaigns/search_method.hpp"
#include "commands/search/best_probabilities.hpp"
#include "commands/search/search_trials.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

SearchedScenario searched() {
  SearchedScenario scenario;
  scenario.scenario.name = "tiny";
  scenario.keys = read_search_keys("strategy.n=1..6,strategy.word=a|b", scenario.scenario);
  return scenario;
}

TrialOptions options_of(const SearchedScenario& scenario) {
  TrialOptions options;
  options.column = "speed";
  options.name = [&](const Values& values) { return search_name(scenario.keys, values); };
  return options;
}

/// speed = n, 10 more for "b"; n = 6 does not fit, n = 1 is refused. Counts what it is asked for.
struct Toy {
  int simulated = 0;
  std::map<std::string, Row> operator()(const std::map<std::string, Values>& open) {
    std::map<std::string, Row> rows;
    for (const auto& [name, values] : open) {
      ++simulated;
      if (values[0] == 1) {
        rows[name].set("failed", std::string("s.yaml:1:1: n: expected more"));
        continue;
      }
      rows[name].set("speed", values[0] + 10 * values[1]);
      rows[name].set("fits", values[0] < 6);
    }
    return rows;
  }
};

}  // namespace

TEST_CASE("a search simulates each setting once and finds the best that fits", "[commands]") {
  const auto method =
      GENERATE(SearchMethod::bayesian, SearchMethod::random, SearchMethod::evolution, SearchMethod::direct);
  const SearchedScenario scenario = searched();
  TrialOptions options = options_of(scenario);
  options.evaluations = 12;  // all there are
  const auto optimizer = make_optimizer(space_of(scenario.keys), {method, 12, 0, 1});
  Toy toy;
  int rounds = 0;
  const auto evaluations = run_trials(*optimizer, options, {}, std::ref(toy), [&](const auto&) { ++rounds; });
  CHECK(toy.simulated == std::ssize(evaluations));
  CHECK(rounds > 0);
  if (method == SearchMethod::evolution) return;  // need not see all
  CHECK(evaluations.size() == 12);
  CHECK(best_of(evaluations, options).name == "strategy.n=5, strategy.word=b");
  options.smallest = true;
  CHECK(best_of(evaluations, options).name == "strategy.n=2, strategy.word=a");
}

TEST_CASE("known settings are not simulated again, and the search proceeds in the same way", "[commands]") {
  const SearchedScenario scenario = searched();
  TrialOptions options = options_of(scenario);
  options.evaluations = 8;
  const auto run = [&](std::map<std::string, Row> known, Toy& toy) {
    const auto optimizer = make_optimizer(space_of(scenario.keys), {});
    return run_trials(*optimizer, options, std::move(known), std::ref(toy), [](const auto&) {});
  };
  Toy first, second;
  const auto evaluations = run({}, first);
  const TemporaryFolder folder;
  const auto file = folder.path() / "search.csv";
  write_atomically(file, search_csv(scenario, evaluations));
  const auto again = run(read_search_csv(file, scenario), second);
  CHECK(first.simulated == 8);
  CHECK(second.simulated == 0);
  CHECK(search_csv(scenario, again) == search_csv(scenario, evaluations));
}

TEST_CASE("the table has the best first and says why others have no value", "[commands]") {
  const SearchedScenario scenario = searched();
  const TrialOptions options = options_of(scenario);
  std::vector<Evaluation> evaluations;
  Toy toy;
  for (const Values& values : {Values{1, 0}, Values{6, 1}, Values{3, 0}, Values{2, 1}}) {
    const std::string name = options.name(values);
    evaluations.push_back({name, values, toy({{name, values}}).at(name)});
  }
  const Table table = search_table(scenario, evaluations, options, 10);
  REQUIRE(table.rows.size() == 4);
  CHECK(table.rows[0] == std::vector<std::string>{"4", "2", "b", "12"});
  CHECK(table.rows[1] == std::vector<std::string>{"3", "3", "a", "3"});
  CHECK(table.rows[2].back() == "refused");
  CHECK(table.rows[3].back() == "16, does not fit");
  CHECK(search_table(scenario, evaluations, options, 2).rows.size() == 2);
}

TEST_CASE("a search without any value says why", "[commands][errors]") {
  const SearchedScenario scenario = searched();
  TrialOptions options = options_of(scenario);
  Toy toy;
  const auto evaluation = [&](const Values& values) {
    const std::string name = options.name(values);
    return Evaluation{name, values, toy({{name, values}}).at(name)};
  };
  CHECK_THROWS_WITH(best_of({evaluation({1, 0})}, options), "s.yaml:1:1: n: expected more");
  CHECK_THROWS_WITH(best_of({evaluation({6, 0})}, options),
                    "none of the 1 evaluated settings fits into a device's memory");
  options.column = "sped";
  CHECK_THROWS_WITH(best_of({evaluation({3, 0})}, options),
                    "--maximise: expected a column with numbers, got \"sped\"; did you mean \"speed\"?");
}

TEST_CASE("settings that differ by less than their own errors are not told apart", "[commands]") {
  const auto close = best_probabilities({{100}, {100.2}, {80}}, 0.02);
  CHECK(std::accumulate(close.begin(), close.end(), 0.0) == Approx(1));
  CHECK(close[1] == Approx(0.53).margin(0.08));  // normal distribution: 0.1 / 1.41 standard deviations
  CHECK(close[2] == 0);
  CHECK(told_apart_line({"a", "b", "c"}, close).starts_with("cannot be told apart, 2 of 3: b ("));
  const auto clear = best_probabilities({{100}, {120}}, 0.02);
  CHECK(clear == std::vector<double>{0, 1});
  CHECK(told_apart_line({"a", "b"}, clear) == "best of 2: b (100 %)");
}

TEST_CASE("draws in which different settings win count by their number", "[commands]") {
  const auto won = best_probabilities({{100, 100, 100, 50}, {50, 50, 50, 100}}, 0.02);
  CHECK(won[0] == Approx(0.75));
}
