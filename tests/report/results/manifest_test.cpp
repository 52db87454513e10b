#include "report/results/manifest.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

TEST_CASE("sha256 gives the digests of FIPS 180-4", "[report]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("manifest.json reads back to what was written", "[report]") {
  const TemporaryFolder folder;
  write_atomically(folder.path() / "a.yaml", "abc");
  const Manifest manifest{.version = "0.1.0",
                          .scenario = "goyal \"1h\"",
                          .date = "2026-01-02T03:04:05Z",
                          .command = {"stepcast", "run", "a b.yaml"},
                          .settings = {"sweep.workers=8..64"},
                          .seed = 18446744073709551615U,
                          .sweep = {"workers"},
                          .fidelities = {"coupled", "message"},
                          .inputs = {hashed("scenario", folder.path() / "a.yaml")}};
  const auto text = to_json(manifest);
  const auto read = read_manifest(text, "manifest.json");
  CHECK(to_json(read) == text);
  CHECK(read.settings == manifest.settings);
  CHECK(read.seed == manifest.seed);
  CHECK(read.command == manifest.command);
  CHECK(read.inputs.at(0).role == "scenario");
  CHECK(read.inputs.at(0).sha256 == sha256("abc"));
}

TEST_CASE("read_manifest refuses what is no manifest", "[report][errors]") {
  CHECK_THROWS_AS(read_manifest("{}", "manifest.json"), InputError);
  CHECK_THROWS_WITH(read_manifest("{", "m.json"),
                    Catch::StartsWith("m.json:1:1: expected a manifest of stepcast: "));
  CHECK_THROWS_WITH(read_manifest(R"({"seed":1e20})", "m.json"),
                    "m.json:1:1: seed: expected an integer from 0 to 18446744073709551615, got 1e+20");
}

TEST_CASE("a shard's description with a number that no run writes is refused", "[report][errors]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "shard.json";
  const auto read_with = [&](const std::string& draws, const std::string& shard, const std::string& shards) {
    write_atomically(file,
                     R"({"build":"1","scenario":"s","settings":[],"inputs":[],"results_only":true,"draws":)" +
                         draws + ",\"shard\":" + shard + ",\"shards\":" + shards + "}");
    return read_shard_folder(folder.path());
  };
  CHECK(read_with("0", "1", "2").shard == 1);
  CHECK_THROWS_WITH(read_with("-1", "0", "1"),
                    file.string() + ":1:1: draws: expected an integer from 0 to 100000, got -1");
  CHECK_THROWS_AS(read_with("1e300", "0", "1"), InputError);
  CHECK_THROWS_AS(read_with("1", "-1", "1"), InputError);
  CHECK_THROWS_WITH(read_with("1", "0", "\"two\""),
                    file.string() + ":1:1: shards: expected an integer from 1 to 1000000, got \"two\"");
}
