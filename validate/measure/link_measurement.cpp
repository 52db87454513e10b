#include "validate/measure/link_measurement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/os/files.hpp"
#include "core/typed_numbers.hpp"
#include "report/results/row_fields.hpp"

namespace stepcast {
namespace {

using What = LinkMeasurement::What;

const std::vector<std::string>& names() {
  static const std::vector<std::string> all{
      "half_round_trip", "pairs",           "shift_replace",   "shift_add",     "all_reduce",
      "memory_alone",    "memory_together", "message_host",    "compute_alone", "all_reduce_alone",
      "compute_beside",  "hand_over",       "program_message", "storage",       "compute_beside_load",
      "arithmetic"};
  return all;
}

What read_what(const RowFields& fields) {
  const auto found = std::ranges::find(names(), fields.text("what"));
  if (found == names().end()) fields.refuse("what", fmt::format("one of {}", fmt::join(names(), ", ")));
  return static_cast<What>(found - names().begin());
}

LinkMeasurement read_measurement(const RowFields& fields) {
  LinkMeasurement one{read_what(fields)};
  one.algorithm = fields.text("algorithm", "");
  one.network = fields.text("network", "");
  one.bytes = fields.number("bytes");
  one.seconds = fields.number("seconds");
  one.low = fields.maybe_number("low");
  one.high = fields.maybe_number("high");
  one.repeats = fields.integer("repeats", 0);
  one.cpu_seconds = fields.maybe_number("cpu_seconds");
  one.off_core_seconds = fields.maybe_number("off_core_seconds");
  one.stolen_seconds = fields.maybe_number("stolen_seconds");
  one.in_step = fields.flag("in_step");
  one.ranks = fields.integer("ranks", 0);
  return one;
}

}  // namespace

const std::string& to_string(What what) {
  return names().at(ordinal(what));
}

const LinkMeasurement* first_of(const LinkMeasurements& links, What what) {
  const auto found = std::ranges::find(links, what, &LinkMeasurement::what);
  return found == links.end() ? nullptr : &*found;
}

LinkMeasurements read_link_measurements(std::string_view text, const std::string& file) {
  return read_rows(read_json_lines(text, file), file, read_measurement);
}

LinkMeasurements read_link_measurements(const std::filesystem::path& file) {
  return read_link_measurements(read_file(file), file.string());
}

Row to_row(const LinkMeasurement& one) {
  Row row;
  const auto set = [&row](const char* column, const std::optional<double>& value) {
    if (value) row.set(column, *value);
  };
  row.set("what", to_string(one.what));
  row.set("algorithm", one.algorithm);
  if (!one.network.empty()) row.set("network", one.network);
  row.set("bytes", one.bytes);
  row.set("seconds", one.seconds);
  set("low", one.low);
  set("high", one.high);
  row.set("repeats", one.repeats);
  set("cpu_seconds", one.cpu_seconds);
  set("off_core_seconds", one.off_core_seconds);
  set("stolen_seconds", one.stolen_seconds);
  if (one.in_step) row.set("in_step", true);
  if (one.ranks > 0) row.set("ranks", std::int64_t{one.ranks});
  return row;
}

Results to_results(const LinkMeasurements& links) {
  Results results{"calibrate", {}};
  for (const LinkMeasurement& one : links) results.rows.push_back(to_row(one));
  return results;
}

std::string to_json_line(const LinkMeasurement& one) {
  return to_json_line(Results{"calibrate", {}}, to_row(one));
}

}  // namespace stepcast
