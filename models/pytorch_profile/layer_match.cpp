#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "models/pytorch_profile/operators.hpp"
#include "models/pytorch_profile/profile.hpp"

namespace stepcast {
namespace {

constexpr int kMostTrials = 2'000'000;
constexpr int kLongestLayer = 64;  // operators of one layer, such as attention written out

/// The layer's first operators, and how many.
struct Option {
  int layer = 0, count = 0;
};

struct Level {
  int position = 0;  ///< first operator that is not placed
  std::vector<Option> options;
  std::size_t next = 0;
  std::vector<int> placed;  ///< layers that the chosen option finished, with those that do no work
};

class Matcher {
 public:
  Matcher(const std::string& file, const std::vector<NetworkOperator>& operators, const Model& model,
          std::int64_t batch)
      : file_(file), operators_(operators), model_(model), batch_(batch) {}
  LayerMatch match();

 private:
  bool fits(int layer, int position) const;
  bool shapes_fit(const Layer& layer, const NetworkOperator& one) const;
  bool is_projection(int layer) const;
  bool rows_fit(const Layer& layer, int position, int count) const;
  bool computes(int position, int count) const;
  int longest(int layer, int position) const;
  std::vector<Option> options(int position, int last) const;
  void place(int layer, std::vector<int>& placed);
  void undo(Level& level);
  [[noreturn]] void refuse() const;
  void note_failure(int position);

  const std::string& file_;
  const std::vector<NetworkOperator>& operators_;
  const Model& model_;
  const std::int64_t batch_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> missing_inputs_;
  std::set<int> ready_;
  std::size_t done_ = 0;
  int deepest_ = -1;
  std::string expected_;
};

bool works(const Layer& layer) {
  return layer.kind != LayerKind::reshape && layer.kind != LayerKind::first_token;
}

double size_of(const Shape& shape) {
  double product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

/// A layer's first input and, of convolutions, the weights.
bool Matcher::shapes_fit(const Layer& layer, const NetworkOperator& one) const {
  if (batch_ == 0 || one.shapes.empty() || layer.kind == LayerKind::embedding ||
      layer.kind == LayerKind::position_embedding || layer.kind == LayerKind::class_token ||
      layer.kind == LayerKind::measured || is_loss(layer.kind))
    return true;
  const bool several = one.kind == "product" || one.name.find("addmm") != std::string::npos;
  if (several || one.shapes.front().empty()) return true;
  const double input = batch_ * size_of(layer.input);
  const bool one_input = layer.kind != LayerKind::attention && layer.kind != LayerKind::gelu;
  if (one_input && size_of(one.shapes.front()) != input) return false;
  if (layer.kind != LayerKind::convolution || layer.parameters.empty() || one.shapes.size() < 2) return true;
  return one.shapes[1] == layer.parameters.front().shape;
}

/// True for a dense layer of queries, keys and values, which only an attention reads. Programs compute them
/// in one dense operator or in several.
bool Matcher::is_projection(int layer) const {
  const std::vector<int>& readers = readers_[layer];
  return model_.layers[layer].kind == LayerKind::dense && readers.size() == 1 &&
         model_.layers[readers.front()].kind == LayerKind::attention;
}

/// True if the dense operators' weights have together as many rows as the layer's, where they were recorded.
bool Matcher::rows_fit(const Layer& layer, int position, int count) const {
  if (batch_ == 0 || layer.kind != LayerKind::dense) return true;
  std::int64_t rows = 0;
  for (int i = position; i < position + count; ++i) {
    const NetworkOperator& one = operators_[i];
    if (one.kind != "dense" || one.name.find("addmm") != std::string::npos) continue;
    if (one.shapes.size() < 2) return true;
    const Shape& weight = one.shapes[1];
    if (!shapes_fit(layer, one) || weight.size() != 2 || weight[1] != layer.input.back()) return false;
    rows += weight[0];
  }
  return rows == 0 || rows == layer.output.back();
}

/// False if the operators only change shapes.
bool Matcher::computes(int position, int count) const {
  return std::any_of(operators_.begin() + position, operators_.begin() + position + count,
                     [](const NetworkOperator& one) { return one.kind != "view"; });
}

bool Matcher::fits(int layer, int position) const {
  const Layer& to = model_.layers[layer];
  const NetworkOperator& one = operators_[position];
  return begins_layer(to.kind, one.kind) && shapes_fit(to, one);
}

int Matcher::longest(int layer, int position) const {
  const LayerKind kind = model_.layers[layer].kind;
  const int end = operators_.size();
  if (is_loss(kind) && done_ + 1 == model_.layers.size()) return end - position;
  const bool projection = is_projection(layer);
  const auto goes_on = [&](const std::string& next) {
    return continues_layer(kind, next) || (projection && next == "dense");
  };
  int count = 1;
  while (position + count < end && count < kLongestLayer && goes_on(operators_[position + count].kind))
    ++count;
  return count;
}

std::vector<Option> Matcher::options(int position, int last) const {
  std::vector<int> layers;
  for (const int layer : ready_) {
    if (fits(layer, position)) layers.push_back(layer);
  }
  const auto goes_on = [&](int layer) {
    const auto& inputs = model_.layers[layer].inputs;
    return std::find(inputs.begin(), inputs.end(), last) != inputs.end();
  };
  std::stable_partition(layers.begin(), layers.end(), goes_on);
  std::vector<Option> all;
  for (const int layer : layers) {
    const Layer& to = model_.layers[layer];
    const int most = longest(layer, position);
    const bool short_first = to.kind == LayerKind::dense;
    for (int i = 0; i < most; ++i) {
      const int count = short_first ? i + 1 : most - i;
      if (to.kind == LayerKind::attention && !computes(position, count)) continue;
      if (rows_fit(to, position, count)) all.push_back({layer, count});
    }
  }
  return all;
}

/// Marks a layer as placed, and then every layer that does no work and whose inputs are placed.
void Matcher::place(int layer, std::vector<int>& placed) {
  placed.push_back(layer);
  for (std::size_t i = placed.size() - 1; i < placed.size(); ++i) {
    ready_.erase(placed[i]);
    ++done_;
    for (const int reader : readers_[placed[i]]) {
      if (--missing_inputs_[reader] > 0) continue;
      if (works(model_.layers[reader])) {
        ready_.insert(reader);
      } else {
        placed.push_back(reader);
      }
    }
  }
}

void Matcher::undo(Level& level) {
  for (auto layer = level.placed.rbegin(); layer != level.placed.rend(); ++layer) {
    for (const int reader : readers_[*layer]) {
      ready_.erase(reader);
      ++missing_inputs_[reader];
    }
    --done_;
  }
  if (!level.placed.empty()) ready_.insert(level.placed.front());
  level.placed.clear();
}

void Matcher::note_failure(int position) {
  if (position <= deepest_) return;
  deepest_ = position;
  expected_.clear();
  for (const int layer : ready_) {
    const Layer& one = model_.layers[layer];
    if (!expected_.empty()) expected_ += " or ";
    expected_ += fmt::format("{} ({})", one.name, to_string(one.kind));
    if (expected_.size() > 100) break;
  }
}

void Matcher::refuse() const {
  std::string got = "the end of the forward pass";
  if (deepest_ >= 0 && deepest_ < std::ssize(operators_)) {
    const NetworkOperator& one = operators_[deepest_];
    got = one.name;
    if (!one.shapes.empty() && !one.shapes.front().empty()) got += " of " + to_string(one.shapes.front());
  }
  throw InputError(fmt::format(
      "{}: does not match model {}: operator {} of the forward pass: expected {}, got {}", file_, model_.name,
      std::max(0, deepest_) + 1, expected_.empty() ? "no more operators" : "layer " + expected_, got));
}

LayerMatch Matcher::match() {
  const std::size_t layers = model_.layers.size();
  readers_.resize(layers);
  missing_inputs_.assign(layers, 0);
  std::vector<int> begin;
  for (std::size_t i = 0; i < layers; ++i) {
    for (const int input : model_.layers[i].inputs) {
      if (input < 0) continue;
      readers_[input].push_back(i);
      ++missing_inputs_[i];
    }
    if (missing_inputs_[i] == 0) begin.push_back(i);
  }
  std::vector<int> placed_first;
  for (const int layer : begin) {
    if (works(model_.layers[layer])) {
      ready_.insert(layer);
    } else {
      place(layer, placed_first);
    }
  }
  std::vector<Level> levels;
  levels.push_back({0, options(0, -1), 0, {}});
  int trials = 0;
  const int end = operators_.size();
  while (true) {
    Level& level = levels.back();
    undo(level);
    if (level.next == level.options.size()) {
      note_failure(level.position);
      levels.pop_back();
      if (levels.empty() || ++trials > kMostTrials) refuse();
      continue;
    }
    const Option option = level.options[level.next++];
    place(option.layer, level.placed);
    const int position = level.position + option.count;
    if (position == end && done_ == layers) break;
    levels.push_back(
        {position, position < end ? options(position, option.layer) : std::vector<Option>{}, 0, {}});
  }
  LayerMatch match(layers);
  for (const Level& level : levels) {
    const Option& option = level.options[level.next - 1];
    for (int i = 0; i < option.count; ++i) match[option.layer].push_back(level.position + i);
  }
  return match;
}

}  // namespace

LayerMatch match_layers(const std::string& file, const std::vector<NetworkOperator>& operators,
                        const Model& model, std::int64_t batch) {
  if (operators.empty() || model.layers.empty()) throw InputError(fmt::format("{}: has no operators", file));
  for (const NetworkOperator& one : operators) {
    if (one.region)
      throw InputError(
          fmt::format("{}: its operator {} is several layers in one (torch.compile, a CUDA graph); give "
                      "--write-model in place of --model, which makes it one measured layer",
                      file, one.name));
  }
  return Matcher(file, operators, model, batch).match();
}

std::int64_t recorded_batch(const std::vector<NetworkOperator>& operators) {
  for (const NetworkOperator& one : operators) {
    const std::size_t input = one.kind == "embedding" ? 1 : 0;
    if (one.shapes.size() > input && one.shapes[input].size() > 1 &&
        one.name.find("addmm") == std::string::npos)
      return std::max<std::int64_t>(0, one.shapes[input].front());
  }
  return 0;
}

}  // namespace stepcast
