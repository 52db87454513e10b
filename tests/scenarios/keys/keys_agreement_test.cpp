
#include <catch2/catch.hpp>

#include "core/keys.hpp"
#include "platforms/platform.hpp"
#include "scenario_text.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/scenario.hpp"
#include "scenarios/reader/scenario_documents.hpp"

using namespace stepcast;

namespace {

/// A run that has every mapping of a scenario, with the keys that must be there.
YamlNode whole_run(const std::string& strategy) {
  return parse_yaml(R"(
model: small-cnn
trace: small-cnn-b64-cpu
platform: lassen
workers: 4
strategy: )" + strategy +
                        R"(
noise: {jitter: lognormal, sigma: 0.1, straggler_share: 0.1, straggler_factor: 2}
data: {sample_size: 1 kB}
epoch: {samples: 1000, epochs: 1}
faults: {node_mtbf: 10 h, checkpoint: {interval: 1 h, background: true, snapshot: 1 s}, slow: {share: 0.1, factor: 2, lasts: 1 s, every: 1 s}}
campaign: {points: 2, groups: 2, folds: 2, early_stopping: {share: 0.1, after: 0.5}, optimizer: {by: evolution, generation: 1}}
learning: {mini_batches: 1, learning_rate: 0.1, data: {kind: images}}
)",
                    "run.yaml");
}

/// The reader's complaint about one value, or "" if it has none about this key.
std::string complaint(const YamlNode& run, const std::string& path, const std::string& text, bool quoted) {
  YamlNode document = run;
  YamlNode value;
  value.kind = YamlNode::Kind::scalar;
  value.text = text;
  value.quoted = quoted;
  value.place = run.place;
  assign(document, {path, value});
  Library library;
  try {
    build_experiment(document, {}, library);
  } catch (const InputError& error) {
    const std::string what = error.what();
    if (what.find(": " + path + ": ") != std::string::npos) return what;
  }
  return "";
}

/// Calls `visit` with the path of every key that is not inside a list.
template <class Visit>
void for_each_key(const Keys& keys, const std::string& prefix, const Visit& visit) {
  for (const Key& key : keys) {
    const std::string path = prefix + std::string(key.name);
    visit(path, key);
    if (key.inside != nullptr && key.allowed.is(KeyType::mapping))
      for_each_key(key.inside(), path + ".", visit);
  }
}

const char* kSynchronous = "{kind: synchronous}";

}  // namespace

TEST_CASE("a key that no table has is refused everywhere in a scenario", "[scenarios][keys]") {
  const YamlNode run = whole_run(kSynchronous);
  for_each_key(run_keys(), "", [&](const std::string& path, const Key& key) {
    if (key.inside == nullptr || !key.allowed.is(KeyType::mapping) || path == "proposal" ||
        run.find(path) == nullptr)
      return;
    const std::string unknown = path + ".unknown_key";
    CAPTURE(unknown);
    CHECK(complaint(run, unknown, "1", false).find("unknown key") != std::string::npos);
    CHECK(!key_errors(YamlValue(parse_yaml("{" + path + ": {unknown_key: 1}}", "x"), ""), run_keys(),
                      Required::in_lists)
               .empty());
  });
}

TEST_CASE("every scenario and the text of every strategy is right by the tables", "[scenarios][keys]") {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(STEPCAST_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    for (const auto& path : scenarios_in(entry.path())) {
      const YamlNode root = read_with_defaults(path).root;
      CHECK(key_errors(YamlValue(root, ""), scenario_keys(), Required::in_lists) ==
            std::vector<std::string>{});
    }
  }
}

TEST_CASE("key_errors finds every error of a file, in the readers' words", "[scenarios][keys][errors]") {
  const YamlNode root = parse_yaml(
      "name: s\nworkrs: 3\nbatch_per_worker: 0\nstrategy: {kind: bmuf, block_momentum: 2, form: x}\n"
      "published: [{point: {}}]\n",
      "s.yaml");
  const auto errors = key_errors(YamlValue(root, ""), scenario_keys(), Required::in_lists);
  REQUIRE(errors.size() == 7);
  CHECK(errors[0] == "s.yaml:2:1: workrs: unknown key; did you mean \"workers\"?");
  CHECK(errors[1] == "s.yaml:3:19: batch_per_worker: expected an integer from 1 to 1000000000, got \"0\"");
  CHECK(errors[2] ==
        "s.yaml:4:40: strategy.block_momentum: expected a number or a name (0 to below 1, by_workers), got "
        "\"2\"");
  CHECK(errors[3] == "s.yaml:4:49: strategy.form: expected one of classical, nesterov, got \"x\"");
  CHECK(errors[4].find("published[0].column: missing") != std::string::npos);
}
