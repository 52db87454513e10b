#pragma once

#include "core/fields.hpp"
#include "platforms/platform.hpp"
#include "strategies/plan/run_conditions.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// The keys of `noise:`.
const Fields<Noise>& noise_fields();

/// The keys of `data:`.
const Keys& data_keys();

/// Reads `data:`. @throws InputError
void read_data(const YamlValue& value, const Platform& platform, Setting& setting, Noise& noise);

}  // namespace stepcast
