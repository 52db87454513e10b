#include "campaigns/option_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

namespace stepcast {
namespace {

/// Ends of the interval that values are drawn from. For integers it extends half a unit beyond the range, so
/// that the first and the last integer are as likely as the others.
double low_end(const Parameter& parameter) {
  return parameter.kind == Parameter::Kind::integer ? parameter.low - 0.5 : parameter.low;
}
double high_end(const Parameter& parameter) {
  return parameter.kind == Parameter::Kind::integer ? parameter.high + 0.5 : parameter.high;
}

void check(const Parameter& parameter) {
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument(fmt::format("parameter {}: {}", parameter.name, why));
  };
  if (parameter.kind == Parameter::Kind::choice) {
    if (parameter.choices.empty()) refuse("expected at least one word to choose from");
    return;
  }
  if (!(parameter.low <= parameter.high)) refuse("the lower end of the range is above the upper end");
  if (parameter.logarithmic && parameter.low <= 0) refuse("a logarithmic range must be > 0");
}

}  // namespace

const Words<SearchMethod>& search_method_words() {
  static const Words<SearchMethod> words{{"bayesian", SearchMethod::bayesian},
                                         {"evolution", SearchMethod::evolution},
                                         {"random", SearchMethod::random},
                                         {"direct", SearchMethod::direct}};
  return words;
}

void check(const Space& space) {
  if (space.empty()) throw std::invalid_argument("a space needs at least one parameter");
  for (const Parameter& parameter : space) check(parameter);
}

double point_count(const Space& space) {
  double count = 1;
  for (const Parameter& parameter : space) {
    if (parameter.kind == Parameter::Kind::choice) {
      count *= parameter.choices.size();
    } else if (parameter.kind == Parameter::Kind::integer) {
      count *= std::floor(parameter.high) - std::ceil(parameter.low) + 1;
    } else if (parameter.low < parameter.high) {
      return std::numeric_limits<double>::infinity();
    }
  }
  return count;
}

double value_at(const Parameter& parameter, double u) {
  if (parameter.kind == Parameter::Kind::choice) {
    const double count = parameter.choices.size();
    return std::min(std::floor(u * count), count - 1);
  }
  const double low = low_end(parameter), high = high_end(parameter);
  const double value = parameter.logarithmic ? low * std::pow(high / low, u) : low + u * (high - low);
  const bool whole = parameter.kind == Parameter::Kind::integer;
  return std::clamp(whole ? std::round(value) : value, parameter.low, parameter.high);
}

double position_of(const Parameter& parameter, double value) {
  const double low = low_end(parameter), high = high_end(parameter);
  if (low >= high) return 0;
  return parameter.logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

Values random_values(const Space& space, RandomKey key) {
  Values values;
  for (std::size_t i = 0; i < space.size(); ++i) {
    key.item = i;
    values.push_back(value_at(space[i], uniform(key)));
  }
  return values;
}

std::vector<double> features(const Space& space, const Values& values) {
  std::vector<double> all;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (space[i].kind != Parameter::Kind::choice) {
      all.push_back(position_of(space[i], values[i]));
      continue;
    }
    for (std::size_t word = 0; word < space[i].choices.size(); ++word) {
      all.push_back(word == values[i] ? 1 / std::numbers::sqrt2 : 0.0);
    }
  }
  return all;
}

std::vector<double> finite_values(const std::vector<Outcome>& outcomes) {
  std::vector<double> values;
  double worst = std::numeric_limits<double>::infinity();
  for (const Outcome& outcome : outcomes) {
    values.push_back(outcome.value);
    if (std::isfinite(outcome.value)) worst = std::min(worst, outcome.value);
  }
  for (double& value : values) {
    if (!std::isfinite(value)) value = std::isfinite(worst) ? worst : 0;
  }
  return values;
}

}  // namespace stepcast
