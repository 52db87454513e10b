#include "report/text/progress.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "core/cli/command_line.hpp"

using namespace stepcast;

TEST_CASE("progress says how much is done and how long the rest takes", "[report]") {
  CHECK(progress_text(0, 4, Seconds{2}, "points") == "0 of 4 points, 2.00 s");
  CHECK(progress_text(1, 4, Seconds{10}, "simulations") == "1 of 4 simulations, 10.0 s, 30.0 s left");
  CHECK(progress_text(4, 4, Seconds{10}, "points") == "4 of 4 points, 10.0 s");
}

TEST_CASE("a short run shows no progress", "[report]") {
  std::ostringstream out;
  const auto style = GENERATE(ProgressStyle::line, ProgressStyle::plain);
  Progress progress(out, style);
  progress.update(progress_text(1, 4, Seconds{0.5}, "points"), Seconds{0.5});
  progress.update(progress_text(2, 4, Seconds{0.99}, "points"), Seconds{0.99});
  progress.clear();
  CHECK(out.str().empty());
}

TEST_CASE("a terminal's line is rewritten every 0.2 s at most and wiped at the end", "[report]") {
  std::ostringstream out;
  Progress progress(out, ProgressStyle::line);
  progress.update(progress_text(1, 4, Seconds{1}, "points"), Seconds{1});
  progress.update(progress_text(2, 4, Seconds{1.1}, "points"), Seconds{1.1});
  progress.update(progress_text(4, 4, Seconds{1.2}, "points"), Seconds{1.2});
  progress.clear();
  const std::string first = "1 of 4 points, 1.00 s, 3.00 s left";
  const std::string second = "4 of 4 points, 1.20 s";
  const std::string blank(first.size(), ' ');
  CHECK(out.str() == "\r" + first + "\r" + second + blank.substr(second.size()) + "\r" + blank + "\r");
}

TEST_CASE("a log gets a line every 10 s", "[report]") {
  std::ostringstream out;
  Progress progress(out, ProgressStyle::plain);
  progress.update(progress_text(1, 4, Seconds{5}, "points"), Seconds{5});
  progress.update(progress_text(1, 4, Seconds{10}, "points"), Seconds{10});
  progress.update(progress_text(2, 4, Seconds{19}, "points"), Seconds{19});
  progress.update(progress_text(3, 4, Seconds{21}, "points"), Seconds{21});
  progress.clear();
  CHECK(out.str() == "1 of 4 points, 10.0 s, 30.0 s left\n3 of 4 points, 21.0 s, 7.00 s left\n");
}

TEST_CASE("progress that ends early, as by an error, leaves no line on the terminal", "[report]") {
  std::ostringstream out;
  { Progress(out, ProgressStyle::line).update("half", Seconds{1}); }
  CHECK(out.str() == "\rhalf\r    \r");
}

TEST_CASE("a command with -q shows no progress", "[report]") {
  std::ostringstream out;
  {
    const CommandOutput quiet({.quiet = true});
    Progress progress(out, progress_style());
    progress.update("half", Seconds{20});
  }
  CHECK(out.str().empty());
  CHECK(progress_style() != ProgressStyle::none);
}
