#include "core/fields.hpp"

#include <catch2/catch.hpp>

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
  return std::string(key.type) + "|" + std::string(key.range) + "|" + std::string(key.default_value);
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
