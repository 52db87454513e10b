#include "commands/pool.hpp"
#include <catch2/catch.hpp>
