#include "report/text/narrow_tables.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

namespace stepcast {
namespace {

using Lines = std::vector<std::string>;

/// The characters of a line from `begin` to `end`.
struct TextColumn {
  std::size_t begin, end;
};

std::string_view part_of(const std::string& line, TextColumn span) {
  if (span.begin >= line.size()) return {};
  return std::string_view(line).substr(span.begin, span.end - span.begin);
}

/// The columns of a table. Each ends where all lines have two spaces or more.
std::vector<TextColumn> columns_of(const Lines& lines, std::size_t longest) {
  std::vector<TextColumn> columns;
  std::size_t spaces = 2;
  for (std::size_t at = 0; at < longest; ++at) {
    const bool space =
        std::ranges::all_of(lines, [at](const auto& line) { return at >= line.size() || line[at] == ' '; });
    if (!space && spaces >= 2) columns.push_back({at, at + 1});
    if (!space) columns.back().end = at + 1;
    spaces = space ? spaces + 1 : 0;
  }
  return columns;
}

/// The lines with the first column and those from `first` to before `last`.
std::string lines_of(const Lines& lines, const std::vector<TextColumn>& columns, std::size_t first,
                     std::size_t last) {
  std::string text;
  for (const std::string& line : lines) {
    std::string part(part_of(line, columns.front()));
    part.resize(columns.front().end - columns.front().begin, ' ');
    for (std::size_t i = first; i < last; ++i) {
      const std::string_view cell = part_of(line, columns[i]);
      part += "  ";
      part += cell;
      part.append(columns[i].end - columns[i].begin - cell.size(), ' ');
    }
    part.erase(part.find_last_not_of(' ') + 1);
    text += part + "\n";
  }
  return text;
}

std::string narrowed(const Lines& lines, std::size_t width) {
  const auto longest = std::ranges::max(lines, {}, &std::string::size).size();
  const std::vector<TextColumn> columns =
      longest > width ? columns_of(lines, longest) : std::vector<TextColumn>{};
  std::string text;
  if (columns.size() < 3 || lines.size() < 2) {
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }
  const auto length = [&](std::size_t i) { return columns[i].end - columns[i].begin; };
  for (std::size_t first = 1; first < columns.size();) {
    std::size_t last = first, used = length(0);
    do used += 2 + length(last++);
    while (last < columns.size() && used + 2 + length(last) <= width);
    text += (text.empty() ? "" : "\n") + lines_of(lines, columns, first, last);
    first = last;
  }
  return text;
}

}  // namespace

std::string with_narrow_tables(const std::string& text, int width) {
  if (width <= 0) return text;
  std::string all;
  Lines paragraph;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) {
      paragraph.push_back(line);
      continue;
    }
    if (!paragraph.empty()) all += narrowed(paragraph, width);
    paragraph.clear();
    all += "\n";
  }
  if (!paragraph.empty()) all += narrowed(paragraph, width);
  if (!text.ends_with('\n') && all.ends_with('\n')) all.pop_back();
  return all;
}

}  // namespace stepcast
