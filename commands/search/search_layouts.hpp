#pragma once

#include "commands/search/search_scenario.hpp"

namespace stepcast {

/// `search --layouts`: simulates every layout of the scenario's workers that fits into memory, prints the
/// fastest ones and writes all to layouts.csv.
/// @throws InputError if none fits
void search_layouts(const SearchCommand& command, const SearchedScenario& searched, Library& library);

}  // namespace stepcast
