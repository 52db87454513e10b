#include "models/work/host_operators.hpp"

#include <catch2/catch.hpp>

#include "read_text.hpp"

using namespace stepcast;

namespace {

/// Operators of one block: the difference of networks of two blocks and of one.
HostOperators of_block(const KernelChoice& choice) {
  const auto sum = [&](int layers) {
    const Model model =
        model_of("{name: gpt, source: s, transformer_stack: {layers: " + std::to_string(layers) +
                 ", width: 64, heads: 4, sequence: 16, vocabulary: 100}}");
    HostOperators all;
    for (const HostOperators& layer : host_operators(model, layer_costs(model, choice), choice)) {
      all.forward += layer.forward;
      all.backward += layer.backward;
      all.update += layer.update;
    }
    return all;
  };
  const HostOperators two = sum(2), one = sum(1);
  return {two.forward - one.forward, two.backward - one.backward, two.update - one.update};
}

}  // namespace

TEST_CASE("operators of a GPT block, with scale, mask and softmax in one kernel or in three", "[models]") {
  KernelChoice choice;
  choice.attention = KernelChoice::Attention::fused_softmax;
  const HostOperators fused = of_block(choice);
  // Forward: 2 norms, 4 products, 4 of attention, GELU, 2 additions.
  CHECK(fused.forward == 13);
  // Backward: 4 products of 3 operators (inputs, weights, bias), 2 norms, 8 of attention, GELU, 2 sums of
  // error signals, and one for each of 12 tensors.
  CHECK(fused.backward == 37);
  CHECK(fused.update == 12);
  choice.attention = KernelChoice::Attention::eager;
  CHECK(of_block(choice).forward == fused.forward + 2);
  CHECK(of_block(choice).backward == fused.backward + 2);
}
