#include "scenarios/sweep.hpp"
#include <catch2/catch.hpp>
