#include "report/json_text.hpp"

#include <nlohmann/json.hpp>

namespace stepcast {

std::string json_text(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stepcast
