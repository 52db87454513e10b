// Prints how long Bayesian::ask takes against the points it knows, and the fit base + cubic n^3 that
// docs/reference/campaigns.md and `campaign.optimizer` take over. Not a test: `campaigns_proposal_cost`.
#include <chrono>
#include <cstdio>
#include <string>

#include "campaigns/bayesian.hpp"

using namespace stepcast;

namespace {

Space six_parameters() {
  Space space;
  for (int i = 0; i < 6; ++i) space.push_back({.name = "x" + std::to_string(i)});
  return space;
}

double bowl(const Values& x) {
  double sum = 0;
  for (const double one : x) sum -= (one - 0.3) * (one - 0.3);
  return sum;
}

/// Seconds of the quickest of three proposals after `known` outcomes.
double seconds_of_ask(int known) {
  Bayesian optimizer(six_parameters(), {.initial = known});
  for (int i = 0; i < known; ++i) {
    const Trial trial = *optimizer.ask();
    optimizer.tell(trial, bowl(trial.values));
  }
  double least = 1e300;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Trial trial = *optimizer.ask();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    optimizer.tell(trial, bowl(trial.values));
    least = seconds.count() < least ? seconds.count() : least;
  }
  return least;
}

}  // namespace

int main() {
  // Least squares of the relative error, so that short and long times count alike: t = a + b n^3.
  double ww = 0, wc = 0, cc = 0, tw = 0, tc = 0;
  for (const int known : {50, 100, 200, 400, 800}) {
    const double seconds = seconds_of_ask(known), cube = 1.0 * known * known * known;
    std::printf("%4d points known: %.4f s a proposal\n", known, seconds);
    const double w = 1 / seconds, c = cube / seconds;
    ww += w * w, wc += w * c, cc += c * c, tw += w, tc += c;
  }
  const double determinant = ww * cc - wc * wc;
  std::printf("base %.3g s, cubic %.3g s\n", (tw * cc - tc * wc) / determinant,
              (tc * ww - tw * wc) / determinant);
}
