#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "core/yaml.hpp"
#include "models/pytorch_profile/operators.hpp"
#include "models/pytorch_profile/profile.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostOperators = 20'000;  // of a step; finding what reads what takes their square
constexpr int kInput = -1;                      // the network's input, as in Layer::inputs

/// A layer that is written, and what it is read by.
struct Written {
  std::string name, line;
  Shape output;
  int operator_index = -1;  ///< -1: it only changes the shape
  bool read = false;
};

class NetworkWriter {
 public:
  NetworkWriter(const std::vector<NetworkOperator>& operators, std::int64_t batch)
      : operators_(operators), batch_(batch) {}

  void write();
  const Shape& input() const { return input_; }
  const std::vector<Written>& layers() const { return layers_; }
  int measured() const { return measured_; }

 private:
  void add_operator(int index);
  void add_measured(int index, std::vector<int> inputs);
  bool add_known(int index, const std::vector<int>& inputs, const Shape& in);
  void append(const std::string& name, const std::vector<int>& inputs, const std::string& rest,
              const Shape& output, int operator_index);
  int reshaped(int source, const Shape& in, const std::string& reader);
  int source_of(std::int64_t wanted);
  int second_source(int first, std::int64_t wanted);
  int above() const { return layers_.size() - 1; }
  std::int64_t size(int layer) const { return elements(layer < 0 ? input_ : layers_[layer].output); }
  int latest(std::int64_t wanted, bool unread, int except) const;
  int claim(std::int64_t wanted);
  std::string unique(std::string name);
  std::vector<int> unread() const;

  const std::vector<NetworkOperator>& operators_;
  const std::int64_t batch_;
  Shape input_;
  std::vector<Written> layers_;
  std::vector<int> forks_;  ///< layers whose gradient was a sum, with a reader that is not written yet
  std::set<std::string> names_{"input", "previous"};
  std::map<std::string, int> numbers_;  ///< of operators with the same name, less one
  int measured_ = 0;
};

std::string NetworkWriter::unique(std::string name) {
  std::string result = name;
  while (!names_.insert(result).second) result = fmt::format("{}_{}", name, 1 + ++numbers_[name]);
  return result;
}

std::vector<int> NetworkWriter::unread() const {
  std::vector<int> found;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!layers_[i].read) found.push_back(i);
  }
  return found;
}

void NetworkWriter::append(const std::string& name, const std::vector<int>& inputs, const std::string& rest,
                           const Shape& output, int operator_index) {
  std::vector<std::string> names;
  for (const int input : inputs) {
    names.push_back(input < 0 ? "input" : layers_[input].name);
    if (input >= 0) layers_[input].read = true;
  }
  layers_.push_back({name,
                     fmt::format("  - {{name: {}, inputs: [{}], {}}}\n", name, fmt::join(names, ", "), rest),
                     output, operator_index});
}

int NetworkWriter::latest(std::int64_t wanted, bool unread, int except) const {
  for (int i = above(); i >= 0; --i) {
    const bool fits = i != except && size(i) == wanted;
    if (fits && !(unread && layers_[i].read)) return i;
  }
  return kInput;
}

/// A layer with a further reader whose size fits; kInput if there is none.
int NetworkWriter::claim(std::int64_t wanted) {
  for (auto fork = forks_.rbegin(); fork != forks_.rend(); ++fork) {
    if (size(*fork) != wanted) continue;
    const int layer = *fork;
    forks_.erase(std::next(fork).base());
    return layer;
  }
  return kInput;
}

/// The layer that an operator reads. @param wanted  elements of its input; -1: not known
int NetworkWriter::source_of(std::int64_t wanted) {
  if (wanted < 0 || size(above()) == wanted) return above();
  if (const int fork = claim(wanted); fork != kInput) return fork;
  if (const int free = latest(wanted, true, kInput); free != kInput) return free;
  if (size(kInput) == wanted) return kInput;
  const int any = latest(wanted, false, kInput);
  return any != kInput ? any : above();
}

/// The other layer that an addition reads; kInput if there is none.
int NetworkWriter::second_source(int first, std::int64_t wanted) {
  if (const int free = latest(wanted, true, first); free != kInput) return free;
  if (const int fork = claim(wanted); fork != kInput && fork != first) return fork;
  return latest(wanted, false, first);
}

/// The layer `source`, or a layer behind it that gives its output the shape that the reader has.
int NetworkWriter::reshaped(int source, const Shape& in, const std::string& reader) {
  const Shape& has = source < 0 ? input_ : layers_[source].output;
  if (has == in || elements(has) != elements(in)) return source;
  append(unique(reader + "_input"), {source}, fmt::format("kind: reshape, shape: [{}]", fmt::join(in, ", ")),
         in, -1);
  return above();
}

void NetworkWriter::add_measured(int index, std::vector<int> inputs) {
  const NetworkOperator& one = operators_[index];
  const bool several = one.kind == "other" || one.kind == "product" || one.kind == "add" ||
                       one.kind == "attention" || index + 1 == std::ssize(operators_);
  if (several) {
    for (const int layer : unread()) {
      if (std::find(inputs.begin(), inputs.end(), layer) == inputs.end()) inputs.push_back(layer);
    }
  }
  Shape output = sample_shape(one.output, batch_);
  if (one.output.empty() && index + 1 < std::ssize(operators_))
    output = sample_shape(input_shape(operators_[index + 1]), batch_);
  std::vector<std::int64_t> counts(one.parameters.rbegin(), one.parameters.rend());
  std::erase_if(counts, [](std::int64_t count) { return count <= 0; });
  std::string rest = fmt::format("kind: measured, output: [{}]", fmt::join(output, ", "));
  if (!counts.empty()) rest += fmt::format(", parameters: [{}]", fmt::join(counts, ", "));
  append(unique(layer_name(one)), inputs, rest, output, index);
  ++measured_;
}

/// Adds a layer of a kind that stepcast knows, if the shapes say all about it.
bool NetworkWriter::add_known(int index, const std::vector<int>& inputs, const Shape& in) {
  const NetworkOperator& one = operators_[index];
  const bool last = index + 1 == std::ssize(operators_);
  const auto layer = known_layer(one, in, sample_shape(one.output, batch_));
  if (!layer || (is_loss(layer->kind) && (!last || unread().size() > 1))) return false;
  if (last && !is_loss(layer->kind))
    return false;  // a stage of a pipeline; a network ends with a loss, or measured
  std::vector<int> sources = inputs;
  const std::string name = unique(layer_name(one));
  if (layer->needs_shape) {
    for (int& source : sources) source = reshaped(source, in, name);
  }
  append(name, sources, layer->text, layer->output, index);
  return true;
}

void NetworkWriter::add_operator(int index) {
  const NetworkOperator& one = operators_[index];
  const Shape recorded = input_shape(one), in = sample_shape(recorded, batch_);
  const std::int64_t wanted = recorded.empty() ? -1 : elements(in);
  const int source = source_of(wanted);
  std::vector<int> inputs{source};
  const bool same = one.shapes.size() > 1 && one.shapes[0] == one.shapes[1];  // not a sum with a bias
  if (one.kind == "add" && wanted >= 0 && same) {
    const int other = second_source(source, wanted);
    if (other != kInput && size(source) == wanted) inputs.push_back(other);
  }
  const bool fits = wanted >= 0 && size(source) == wanted && (one.kind != "add" || inputs.size() == 2);
  if (!fits || !add_known(index, inputs, in)) add_measured(index, inputs);
  if (one.times.gradient_sum > 0) forks_.push_back(source);
}

void NetworkWriter::write() {
  input_ = sample_shape(input_shape(operators_.front()), batch_);
  if (input_.size() > 4) input_ = {elements(input_)};
  for (int i = 0; i < std::ssize(operators_); ++i) add_operator(i);
}

/// Sets the sizes of arrays from a list in forward order.
void set_parameters(const std::string& file, const std::vector<std::int64_t>& sizes,
                    std::vector<NetworkOperator>& operators) {
  std::size_t arrays = 0;
  bool known = true;
  std::int64_t recorded = 0;
  for (const NetworkOperator& one : operators) {
    arrays += one.parameters.size();
    for (const std::int64_t count : one.parameters) {
      known = known && count >= 0;
      recorded += std::max<std::int64_t>(0, count);
    }
  }
  if (arrays == 0)
    throw InputError(fmt::format("{}: no gradient was added to the .grad of a parameter", file));
  if (sizes.empty() && !known) {
    throw InputError(
        fmt::format("--parameters: {} holds no shapes (record_shapes=True); give a file with the sizes of "
                    "its {} parameters",
                    file, arrays));
  }
  if (sizes.empty()) return;
  if (sizes.size() != arrays) {
    throw InputError(
        fmt::format("--parameters: expected {} numbers, one for each parameter with a gradient in {}, got {}",
                    arrays, file, sizes.size()));
  }
  const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (known) {
    if (sum == recorded) return;
    throw InputError(fmt::format("--parameters: expected {} elements, as the shapes in {} say, got {}",
                                 recorded, file, sum));
  }
  auto next = sizes.begin();
  for (NetworkOperator& one : operators) {
    for (auto count = one.parameters.rbegin(); count != one.parameters.rend(); ++count) *count = *next++;
  }
}

}  // namespace

ProfileNetwork profile_network(const std::string& file, std::vector<NetworkOperator> operators,
                               std::int64_t batch, const std::string& name,
                               const std::vector<std::int64_t>& parameters) {
  if (operators.empty()) throw InputError(fmt::format("{}: has no operators", file));
  if (operators.size() > kMostOperators)
    throw InputError(fmt::format(
        "{}: more than {} operators in a step; --write-model needs a smaller network", file, kMostOperators));
  set_parameters(file, parameters, operators);
  NetworkWriter writer(operators, batch);
  writer.write();
  ProfileNetwork network;
  network.measured = writer.measured();
  network.text = fmt::format(
      "name: {}\nsource: \"stepcast import: operators of a profile in forward order; which layer reads which "
      "follows from sizes\"\nsample: sample\ninput: [{}]\nlayers:\n",
      nlohmann::json(name).dump(), fmt::join(writer.input(), ", "));
  for (const Written& layer : writer.layers()) {
    network.text += layer.line;
    network.match.push_back(layer.operator_index < 0 ? std::vector<int>{}
                                                     : std::vector<int>{layer.operator_index});
  }
  try {
    const YamlNode node = parse_yaml(network.text, name + ".yaml");
    network.model = read_model(YamlValue(node, ""));
  } catch (const InputError& error) {
    network.fault = error.what();
  }
  return network;
}

}  // namespace stepcast
