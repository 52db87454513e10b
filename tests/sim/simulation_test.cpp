#include "sim/simulation.hpp"

#include <catch2/catch.hpp>

namespace stepcast::simulation_test {

TEST_CASE("results name the fidelity with its variant and its accuracy", "[sim]") {
  CHECK(to_text(UsedFidelity{}) == "message");
  CHECK(to_text(UsedFidelity{.fidelity = Fidelity::fluid}) == "fluid");
  CHECK(to_text(UsedFidelity{.sampled = true}) == "message, sampled");
  CHECK(to_text(UsedFidelity{.uses_bottleneck_sharing = true}) == "message, shared");
  CHECK(to_text(UsedFidelity{.fidelity = Fidelity::coupled, .accuracy = Accuracy::close}) ==
        "coupled, closely");
  CHECK(to_text(UsedFidelity{.fidelity = Fidelity::coupled, .accuracy = Accuracy::rough}) ==
        "coupled, roughly");
}

TEST_CASE("results name the folding with its accuracy", "[sim]") {
  CHECK(to_text(UsedFolding{}) == "folded");
  CHECK(to_text(UsedFolding{.folds = false}) == "unfolded");
  CHECK(to_text(UsedFolding{true, Accuracy::close}) == "folded, closely");
  CHECK(to_text(UsedFolding{true, Accuracy::rough}) == "folded, roughly");
}

}  // namespace stepcast::simulation_test
