#include "gpu/cut_forecast.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "gpu/interpolate.hpp"
#include "gpu/models.hpp"
#include "models/derive.hpp"
#include "models/library.hpp"
#include "scenarios/data_files.hpp"

namespace stepcast {

TEST_CASE("a part of a sample takes less than the whole and more than its share", "[gpu]") {
  const std::filesystem::path models = data_folder() / "models";
  const Model model = model_of("mesh-512");
  const Device device = load_device(models, "h200");
  const Calibration calibration = load_calibration(device, models);
  std::vector<Trace> whole;
  for (const std::int64_t batch : {2, 4}) whole.push_back(derive(model, batch, device, calibration, {}));
  const double all = forecast_step(whole, 3).step.value;
  const auto step = [&](const Parts& parts) {
    return forecast_step(traces_of_part(whole, model, parts, device), 3).step.value;
  };
  CHECK(step({1, 1}) == Approx(all).epsilon(1e-9));
  CHECK(step({2, 1}) < all);
  CHECK(step({2, 1}) > all / 2);
  CHECK(step({2, 2}) < step({2, 1}));
  CHECK(step({2, 2}) > all / 4);
  CHECK_THROWS_WITH(traces_of_part(whole, model, {2}, device), Catch::StartsWith("--parts 2: "));
}

}  // namespace stepcast
