#include "runtime/learning/evaluated_loss.hpp"

#include <cmath>

#include "report/results/row_fields.hpp"

namespace stepcast {

std::vector<EvaluatedLoss> evaluations_of(const Results& learning, const std::string& file) {
  return read_rows(learning, file, [](const RowFields& fields) {
    const double loss = fields.maybe_number("loss").value_or(HUGE_VAL);
    return EvaluatedLoss{.point = fields.text("point", ""),
                         .strategy = fields.text("strategy", ""),
                         .ranks = static_cast<int>(fields.integer("ranks", 0)),
                         .step = fields.integer("step"),
                         .mini_batches_a_step = fields.integer("mini_batches_a_step", 1),
                         .samples = fields.number("samples"),
                         .seconds = fields.number("seconds"),
                         .loss = std::isnan(loss) ? HUGE_VAL : loss,
                         .accuracy = fields.maybe_number("accuracy"),
                         .loss_low_energy = fields.maybe_number("loss_low_energy"),
                         .seed = fields.integer("seed", 0),
                         .predicted_seconds = fields.maybe_number("predicted_seconds")};
  });
}

Row to_row(const EvaluatedLoss& one) {
  Row row;
  if (!one.point.empty()) row.set("point", one.point);
  row.set("strategy", one.strategy);
  row.set("ranks", std::int64_t{one.ranks});
  row.set("step", one.step);
  row.set("mini_batches_a_step", one.mini_batches_a_step);
  row.set("samples", one.samples);
  row.set("seconds", one.seconds);
  row.set("loss", one.loss);
  if (one.accuracy) row.set("accuracy", *one.accuracy);
  if (one.loss_low_energy) row.set("loss_low_energy", *one.loss_low_energy);
  if (one.seed > 0) row.set("seed", one.seed);
  if (one.predicted_seconds) row.set("predicted_seconds", *one.predicted_seconds);
  return row;
}

}  // namespace stepcast
