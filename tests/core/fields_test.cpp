#include "core/fields.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/keys.hpp"

using namespace stepcast;

namespace {

enum class Shape { round, flat };

struct Leg {
  double length = 0.7;
};

const Fields<Leg>& leg_fields() {
  static const Fields<Leg> fields{
      field("length", &Leg::length, number(0, 2), required("a length"), "length of a leg")};
  return fields;
}

struct Top {
  Shape shape = Shape::flat;
  bool waxed = false;
};

/// A mapping with one key of each form.
struct Desk {
  double height = 1e-8;
  int drawers = 4;
  std::uint64_t seed = 3;
  std::optional<int> lamps;
  double start = 0.018;  ///< [s]
  Bytes size{26214400};
  std::optional<Seconds> pause;
  std::string owner;
  Top top;
  std::vector<Leg> legs;
  std::optional<Leg> spare;
};

const Fields<Top>& top_fields() {
  static const Fields<Top> fields{
      field("shape", &Top::shape, choice<Shape>({{"round", Shape::round}, {"flat", Shape::flat}}), "shape"),
      field("waxed", &Top::waxed, boolean(), "whether it is waxed")};
  return fields;
}

const Fields<Desk>& desk_fields() {
  static const Fields<Desk> fields{
      {field("height", &Desk::height, number(1e-30, 1), "height"),
       field("drawers", &Desk::drawers, integer(1, 10'000), "number of drawers"),
       field("seed", &Desk::seed, integer(0), "seed"),
       field("lamps", &Desk::lamps, integer(0, 1'000'000), "lamps"),
       field("start", &Desk::start, duration(1e-3), "start"), field("size", &Desk::size, bytes(1), "size"),
       field("pause", &Desk::pause, or_word(duration(), "best"), required("a time, or best"), "pause"),
       field("owner", &Desk::owner, text(), otherwise("that of `room`"), "who owns it"),
       part(&Desk::top, top_fields()), field("legs", &Desk::legs, list_of<leg_fields>(), "legs"),
       field("spare", &Desk::spare, mapping<leg_fields>(), "a spare leg")},
      [](const YamlMap& map, Desk& desk) {
        if (desk.lamps == 7) map.at("lamps").refuse("seven lamps are too many");
      }};
  return fields;
}

Desk desk_of(const std::string& text) {
  const YamlNode root = parse_yaml(text, "desk.yaml");
  Desk desk;
  read_mapping(YamlValue(root, ""), desk_fields(), desk);
  return desk;
}

std::string row(std::string_view name) {
  const Key& key = *find_key(desk_fields().keys(), name);
  return types_text(key.allowed) + "|" + range_text(key.allowed) + "|" + std::string(key.default_value);
}

}  // namespace

TEST_CASE("a field gives the row of its key, with the member's value in a new struct as default",
          "[core][fields]") {
  CHECK(row("height") == "number|1e-30 to 1|1e-8");
  CHECK(row("drawers") == "integer|1 to 10,000|4");
  CHECK(row("seed") == "integer|>= 0|3");
  CHECK(row("lamps") == "integer|0 to 1e6|none");
  CHECK(row("start") == "time|>= 1 ms|18 ms");
  CHECK(row("size") == "bytes|>= 1 B|25 MiB");
  CHECK(row("pause") == "time or name|>= 0, best|required");
  CHECK(row("owner") == "text||that of `room`");
  CHECK(row("shape") == "name|round, flat|flat");
  CHECK(row("waxed") == "boolean||false");
  CHECK(row("legs") == "list of mappings||none");
  CHECK(row("spare") == "mapping||none");
  CHECK(find_key(desk_fields().keys(), "legs")->inside().front().name == "length");
}

TEST_CASE("the same field reads the member; what a file does not give keeps its value", "[core][fields]") {
  const Desk few = desk_of("pause: best");
  CHECK(few.height == 1e-8);
  CHECK(few.drawers == 4);
  CHECK_FALSE(few.lamps.has_value());
  CHECK_FALSE(few.pause.has_value());
  CHECK(few.top.shape == Shape::flat);
  const Desk all = desk_of(
      "height: 0.5\ndrawers: 2\nseed: 9\nlamps: 1\nstart: 3 s\nsize: 2 KiB\npause: 2 ms\nowner: me\n"
      "shape: round\nwaxed: true\nlegs: [{length: 1}, {length: 2}]\nspare: {length: 0.5}\n");
  CHECK(all.height == 0.5);
  CHECK(all.drawers == 2);
  CHECK(all.seed == 9);
  CHECK(all.lamps == 1);
  CHECK(all.start == 3);
  CHECK(all.size.value == 2048);
  CHECK(all.pause->value == 2e-3);
  CHECK(all.owner == "me");
  CHECK(all.top.shape == Shape::round);
  CHECK(all.top.waxed);
  REQUIRE(all.legs.size() == 2);
  CHECK(all.legs[1].length == 2);
  CHECK(all.spare->length == 0.5);
}

TEST_CASE("errors of fields name the place, the key and what is expected", "[core][fields][errors]") {
  CHECK_THROWS_WITH(desk_of("height: 2\npause: best"),
                    "desk.yaml:1:9: height: expected a number from 1e-30 to 1, got \"2\"");
  CHECK_THROWS_WITH(desk_of("height: 1"), "desk.yaml:1:1: pause: missing (expected a time, or best)");
  CHECK_THROWS_WITH(
      desk_of("pause: best\nshape: rond"),
      "desk.yaml:2:8: shape: expected one of round, flat, got \"rond\"; did you mean \"round\"?");
  CHECK_THROWS_WITH(desk_of("pause: best\nlegs: [{}]"),
                    "desk.yaml:2:8: legs[0].length: missing (expected a length)");
  CHECK_THROWS_WITH(desk_of("pause: best\nlamps: 7"), "desk.yaml:2:8: lamps: seven lamps are too many");
  CHECK_THROWS_WITH(desk_of("pause: best\nlamp: 1"),
                    Catch::Contains("lamp: unknown key; did you mean \"lamps\"?"));
}

namespace {

struct Vehicle {
  Shape kind{};
  int wheels = 4;
  double speed = 1;
};

const Fields<Vehicle>& vehicle_fields() {
  static const Fields<Vehicle> fields =
      Fields<Vehicle>{
          field("kind", &Vehicle::kind, choice<Shape>({{"round", Shape::round}, {"flat", Shape::flat}}),
                required("round or flat"), "kind"),
          only_with("flat", {field("wheels", &Vehicle::wheels, integer(1, 8), "wheels")}),
          field("speed", &Vehicle::speed, number_below(0, 10), "speed")}
          .sourced(Key::Source::may);
  return fields;
}

Vehicle drive(const std::string& text) {
  const YamlNode root = parse_yaml(text, "v.yaml");
  Vehicle vehicle;
  read_mapping_of_kind(YamlValue(root, ""), vehicle_fields(), vehicle);
  return vehicle;
}

}  // namespace

TEST_CASE("a mapping of a kind has the fields of this kind, and values may have a source", "[core][fields]") {
  CHECK(drive("{kind: flat, wheels: 6}").wheels == 6);
  CHECK(drive("{kind: flat, wheels: {value: 2, source: seen}}").wheels == 2);
  CHECK_THROWS_WITH(drive("{kind: round, wheels: 6}"), Catch::Contains("wheels: unknown key"));
  CHECK_THROWS_WITH(drive("{speed: 1}"), "v.yaml:1:1: kind: missing (expected round or flat)");
  CHECK_THROWS_WITH(drive("{kind: flat, speed: 10}"),
                    "v.yaml:1:21: speed: expected a number from 0 to below 10, got \"10\"");
}

TEST_CASE("a number that must have a source is refused without one", "[core][fields][errors]") {
  static const Fields<Leg> fields =
      Fields<Leg>{field("length", &Leg::length, number(0, 2), "length")}.sourced(Key::Source::must);
  const auto length = [](const char* text) {
    const YamlNode root = parse_yaml(text, "f");
    Leg leg;
    read_mapping(YamlValue(root, ""), fields, leg);
    return leg.length;
  };
  CHECK(length("length: {value: 1, source: s}") == 1);
  CHECK_THROWS_WITH(length("length: 1"),
                    Catch::Contains("length: expected a mapping with keys value, source"));
  CHECK_THROWS_WITH(length("length: {value: 1}"),
                    Catch::Contains("length.source: missing (expected where the value comes from)"));
}

namespace {

const Keys& inner_keys() {
  static const Keys keys{{"size", Allowed(KeyType::bytes, {1}), "required", "a size"}};
  return keys;
}

Keys sample_keys() {
  return joined_keys(
      {{{"kind", Allowed(KeyType::name, {}, {"flat", "deep"}), "required", "the kind"},
        {"count", Allowed(KeyType::integer, {1, 10000}), "1", "a count"},
        {"share", Allowed(KeyType::number, {.low = 0, .high = 1, .without_high = true}), "0", "a share"},
        {"inner", KeyType::mapping, "none", "a mapping", inner_keys},
        {"rows", KeyType::mappings, "none", "rows", inner_keys}},
       only_with("deep", {{"levels", Allowed(KeyType::integers, {1, 7}), "none", "levels"}})});
}

std::vector<std::string> errors_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "f");
  return key_errors(YamlValue(node, ""), sample_keys(), Required::all);
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a former name of a key is refused with the present one", "[core][keys]") {
  const Keys keys{renamed({"split_points", KeyType::names, "none", "points"}, "cuts")};
  const YamlNode node = parse_yaml("cuts: [a]", "f");
  CHECK_THROWS_WITH(read_map(YamlValue(node, "strategy"), keys),
                    "f:1:7: strategy.cuts: unknown key; did you mean \"split_points\"?");
  CHECK(key_errors(YamlValue(node, "strategy"), keys, Required::all) ==
        Texts{"f:1:7: strategy.cuts: unknown key; did you mean \"split_points\"?"});
}

TEST_CASE("types are named in their order, with articles in errors", "[core][keys]") {
  CHECK(types_text(KeyType::work_rate) == "work rate");
  CHECK(types_text(Allowed({KeyType::integer, KeyType::integers, KeyType::name, KeyType::mapping})) ==
        "integer, list of integers, name or mapping");
  CHECK(types_text(Allowed({KeyType::boolean, KeyType::integer, KeyType::path}), true) ==
        "a boolean, an integer or a path");
  CHECK(types_text(Allowed({KeyType::bytes, KeyType::name}), true) == "bytes or a name");
  CHECK(types_text(Allowed({KeyType::text, KeyType::texts}), true) == "text or a list of texts");
}

TEST_CASE("each type has a name of its own, and lists have items of the type that they name",
          "[core][keys]") {
  Texts names;
  for (auto one = KeyType::text; one <= KeyType::mappings; one = KeyType(ordinal(one) + 1)) {
    names.push_back(types_text(one));
    CHECK(is_list(one) == names.back().starts_with("list"));
    if (one > KeyType::values && one != KeyType::layers)
      CHECK(names.back() == "list of " + types_text(item_of(one)) + "s");
  }
  CHECK(item_of(KeyType::layers) == KeyType::layer);
  for (const KeyType any : {KeyType::list, KeyType::lists, KeyType::values})
    CHECK(item_of(any) == KeyType::value);
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

TEST_CASE("what a key allows is said in words", "[core][keys]") {
  CHECK(range_text(Allowed(KeyType::integer, {1, 10'000})) == "1 to 10,000");
  CHECK(range_text(Allowed(KeyType::integers, {0, 1'234'000})) == "0 to 1,234,000");
  CHECK(range_text(Allowed(KeyType::number, {1e-9, 1000})) == "1e-9 to 1e3");
  CHECK(range_text(Allowed(KeyType::number, {.low = 0, .high = 1, .without_high = true})) == "0 to below 1");
  CHECK(range_text(Allowed(KeyType::bandwidth, {.low = 0, .without_low = true})) == "> 0");
  CHECK(range_text(Allowed({KeyType::bytes, KeyType::name}, {2048}, {"tensor", "model"})) ==
        ">= 2 KiB, tensor, model");
  CHECK(range_text(Allowed(KeyType::integer, {}, {}, "a divisor of the workers")) ==
        "a divisor of the workers");
  CHECK(range_text({KeyType::integer}).empty());
  CHECK(allowed_text(Allowed(KeyType::time, {1e-3})) == "time: >= 1 ms");
  CHECK(allowed_text({KeyType::texts}) == "list of texts");
}

TEST_CASE("a value has the largest unit that is not above it", "[core][keys]") {
  CHECK(value_text(KeyType::number, 1e-8) == "1e-8");
  CHECK(value_text(KeyType::integer, 4096) == "4096");
  CHECK(value_text(KeyType::time, 0) == "0 s");
  CHECK(value_text(KeyType::time, 0.018) == "18 ms");
  CHECK(value_text(KeyType::time, 2e-10) == "0.2 ns");
  CHECK(value_text(KeyType::bytes, 0) == "0 B");
  CHECK(value_text(KeyType::bytes, 25 << 20) == "25 MiB");
  CHECK(value_text(KeyType::bytes, 1.5e9) == "1.5 GB");
  CHECK(value_text(KeyType::bandwidth, 12.5e9) == "12.5 GB/s");
  CHECK(value_text(KeyType::work_rate, 0.5) == "0.5 flop/s");
}

TEST_CASE("what a key allows keeps its words", "[core][keys]") {
  const Allowed model({KeyType::bytes, KeyType::name}, {1}, {"tensor", "model"});
  CHECK(model.words() == Texts{"tensor", "model"});
  CHECK(&Allowed(KeyType::name, {}, {"tensor", "model"}).words() == &model.words());  // kept once
  CHECK(Allowed(KeyType::name, {}, {}, "one of a list").words().empty());
}

TEST_CASE("the keys of a kind are those of all kinds and its own", "[core][keys]") {
  CHECK(names_of(keys_of_kind(sample_keys(), "flat")) == Texts{"kind", "count", "share", "inner", "rows"});
  CHECK(names_of(keys_of_kind(sample_keys(), "deep")).back() == "levels");
  CHECK(key_paths(sample_keys()) == Texts{"kind", "count", "share", "inner", "inner.size", "rows", "levels"});
}

TEST_CASE("a mapping without errors has none, and every error of a mapping is found",
          "[core][keys][errors]") {
  CHECK(errors_of("{kind: deep, count: 10000, share: 0.5, inner: {size: 1 B}, rows: [{size: 2 B}], levels: "
                  "[1, 7]}") == Texts{});
  CHECK(errors_of("{count: 0, share: 1, inner: {}, rows: [{size: 1}], levels: [8]}") ==
        Texts{"f:1:9: count: expected an integer from 1 to 10000, got \"0\"",
              "f:1:19: share: expected a number 0 to below 1, got \"1\"",
              "f:1:29: inner.size: missing (expected a size)",
              "f:1:47: rows[0].size: expected a value >= 1 with its unit, such as \"4 MiB\", got \"1\"",
              "f:1:61: levels[0]: expected an integer from 1 to 7, got \"8\"",
              "f:1:1: kind: missing (expected the kind)"});
  CHECK(errors_of("{kind: flat, levels: [1], other: 2}") ==
        Texts{"f:1:14: levels: unknown key (expected one of: kind, count, share, inner, rows)",
              "f:1:27: other: unknown key (expected one of: kind, count, share, inner, rows)"});
}

TEST_CASE("a value that must have a source is refused without one", "[core][keys][errors]") {
  const Keys must =
      with_sources({{"peak", Allowed(KeyType::number, {0}), "required", "a rate"}}, Key::Source::must);
  const auto errors = [&](const std::string& text) {
    const YamlNode node = parse_yaml(text, "f");
    return key_errors(YamlValue(node, ""), must, Required::all);
  };
  CHECK(errors("{peak: {value: 1, source: x}}") == Texts{});
  CHECK(errors("{peak: {value: 1}}").size() == 1);
  CHECK(errors("{peak: 1}") == Texts{"f:1:8: peak: expected {value: ..., source: ...}, got \"1\""});
}

namespace {

const std::vector<KindKeys>& sample_kinds() {
  static const std::vector<KindKeys> kinds{{"ring",
                                            {{"kind", KeyType::name, "required", "the kind"},
                                             {"chunks", Allowed(KeyType::integer, {1, 8}), "1", "chunks"}}},
                                           {"tree",
                                            {{"kind", KeyType::name, "required", "the kind"},
                                             {"degree", Allowed(KeyType::integer, {2}), "2", "a degree"}}}};
  return kinds;
}

/// Keys of all types, one of which is a mapping whose keys its `kind` decides.
const Keys& typed_keys() {
  static const Keys keys{
      {"plan", KeyType::mapping, "none", "a plan", nullptr, sample_kinds},
      {"rate", KeyType::work_rate, "none", "a rate"},
      {"speed", Allowed(KeyType::bandwidth, {.low = 0, .without_low = true}), "none", "a speed"},
      {"pause", Allowed(KeyType::time, {0}), "none", "a pause"},
      {"on", KeyType::boolean, "none", "a switch"},
      {"size", Allowed({KeyType::bytes, KeyType::name}, {1}, {"tensor"}), "none", "a size"},
      {"inner", KeyType::mapping, "none", "a mapping", inner_keys},
      {"any", KeyType::mapping, "none", "any mapping"},
      {"names", KeyType::texts, "none", "names"},
      {"pairs", KeyType::lists, "none", "pairs"}};
  return keys;
}

Texts typed_errors(const std::string& text) {
  const YamlNode node = parse_yaml(text, "f");
  return key_errors(YamlValue(node, ""), typed_keys(), Required::all);
}

}  // namespace

TEST_CASE("keys have the paths that lead to them, once for each kind of a mapping", "[core][keys]") {
  CHECK(key_paths(typed_keys()) == Texts{"plan", "plan.kind", "plan.chunks", "plan.degree", "rate", "speed",
                                         "pause", "on", "size", "inner", "inner.size", "any", "names",
                                         "pairs"});
  Texts paths;
  for (const auto& [path, key] : keys_with_paths(typed_keys())) paths.push_back(path);
  CHECK(std::ranges::count(paths, "plan.kind") == 2);
  CHECK(paths.size() == key_paths(typed_keys()).size() + 1);
  Texts of_samples;
  for (const auto& [path, key] : keys_with_paths(sample_keys())) of_samples.push_back(path);
  CHECK(of_samples == key_paths(sample_keys()));  // keys inside lists have no path
  CHECK_THROWS_WITH(keys_named(typed_keys(), {"rate", "rates"}), "keys_named: no key rates");
}

TEST_CASE("each type of value is checked, also inside a mapping whose kind decides", "[core][keys][errors]") {
  CHECK(typed_errors("{plan: {kind: tree, degree: 3}, rate: 1 Tflop/s, speed: 1 GB/s, pause: 1 s, on: true, "
                     "size: tensor, "
                     "inner: {size: 1 B}, any: {x: 1}, names: [a], pairs: [[1, 2]]}") == Texts{});
  CHECK(typed_errors("size: 4 MiB") == Texts{});
  CHECK(typed_errors("plan: {degree: 3}") == Texts{});  // the reader says that the kind is missing
  CHECK(typed_errors("plan: {kind: tree, chunks: 3}") ==
        Texts{"f:1:20: plan.chunks: unknown key (expected one of: kind, degree)"});
  CHECK(typed_errors("plan: {kind: star}") ==
        Texts{"f:1:14: plan.kind: expected one of ring, tree, got \"star\""});
  CHECK(typed_errors("plan: tree3") ==
        Texts{"f:1:7: plan: expected a mapping, such as {kind: tree}, got \"tree3\""});
  CHECK(typed_errors("rate: 1 TB/s") ==
        Texts{"f:1:7: rate: expected a value > 0 with its unit, such as \"19.5 Tflop/s\", got \"1 TB/s\""});
  CHECK(typed_errors("size: 0 B") ==
        Texts{"f:1:7: size: expected bytes or a name (>= 1 B, tensor), got \"0 B\""});
  CHECK(
      typed_errors("size: 25MiB") ==
      Texts{
          "f:1:7: size: expected bytes or a name (>= 1 B, tensor), got \"25MiB\"; did you mean \"25 MiB\"?"});
  CHECK(typed_errors("size: tensors") == Texts{"f:1:7: size: expected bytes or a name (>= 1 B, tensor), got "
                                               "\"tensors\"; did you mean \"tensor\"?"});
  CHECK(typed_errors("inner: 3") == Texts{"f:1:8: inner: expected a mapping with keys size, got \"3\""});
  CHECK(typed_errors("any: 3") == Texts{"f:1:6: any: expected a mapping, got \"3\""});
  CHECK(typed_errors("names: 3") == Texts{"f:1:8: names: expected a list, got \"3\""});
  CHECK(typed_errors("[1, 2]") ==
        Texts{"f:1:1: expected a mapping with keys plan, rate, speed, pause, on, size, inner, any, names, "
              "pairs, got a list"});
  CHECK(typed_errors("names: [[1]]").size() == 1);
  CHECK(typed_errors("pairs: [1, {a: 2}]") == Texts{});  // the reader knows what a pair is
}
