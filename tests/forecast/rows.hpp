#pragma once

#include "forecast/summary.hpp"

namespace stepcast {

/// A row of the columns that summaries read.
inline Row row_of(std::int64_t workers, double samples_per_second, double step_seconds) {
  Row row;
  row.set("workers", workers);
  row.set("samples_per_second", samples_per_second);
  row.set("step_seconds", step_seconds);
  return row;
}

inline Assignment value_of(const std::string& key, const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  node.place = {std::make_shared<const std::string>("s.yaml"), 7, 3};
  return {key, node};
}

}  // namespace stepcast
