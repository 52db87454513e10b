#include "runtime/runs/run_sample.hpp"

#include "core/os/files.hpp"
#include "report/results/row_fields.hpp"

namespace stepcast {

std::vector<RunSample> read_run_samples(const std::filesystem::path& file) {
  const Results results = read_json_lines(read_file(file), file.string(), TornLine::drop);
  return read_rows(results, file.string(), [](const RowFields& fields) {
    RunSample one;
    if (const std::int64_t forecast = fields.integer("forecast", 0); forecast > 0) one.forecast = forecast;
    one.point = fields.text("point");
    one.repeat = fields.integer("repeat");
    one.step_seconds = fields.number("step_seconds");
    one.compute_seconds = fields.number("compute_seconds");
    one.disturbance = fields.number("disturbance");
    one.stolen = fields.number("stolen");
    one.waiting_seconds = fields.number("waiting_seconds");
    one.round_trip_seconds = fields.maybe_number("round_trip_seconds");
    one.probe_slowness = fields.maybe_number("probe_slowness");
    one.round_slowness = fields.maybe_number("round_slowness");
    one.kept = fields.flag("kept");
    return one;
  });
}

Row to_row(const RunSample& one) {
  Row row;
  const auto set = [&row](const char* column, const std::optional<double>& value) {
    if (value) row.set(column, *value);
  };
  if (one.forecast) row.set("forecast", *one.forecast);
  row.set("point", one.point);
  row.set("repeat", one.repeat);
  row.set("step_seconds", one.step_seconds);
  row.set("compute_seconds", one.compute_seconds);
  row.set("disturbance", one.disturbance);
  row.set("stolen", one.stolen);
  row.set("waiting_seconds", one.waiting_seconds);
  set("round_trip_seconds", one.round_trip_seconds);
  set("probe_slowness", one.probe_slowness);
  set("round_slowness", one.round_slowness);
  row.set("kept", one.kept);
  return row;
}

}  // namespace stepcast
