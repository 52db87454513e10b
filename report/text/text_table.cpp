#include "report/text/text_table.hpp"

#include <algorithm>
#include <sstream>

#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Words wrapped into lines of at most `width` characters; a longer word gets its own line.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (const auto& word : words_of(text)) {
    if (lines.empty() || display_width(lines.back()) + 1 + display_width(word) > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

struct Layout {
  std::size_t width = 0;
  std::vector<std::string> header;  ///< lines, unit last
};

Layout layout_of(const TableColumn& column, const std::vector<std::vector<std::string>>& rows,
                 std::size_t index) {
  Layout layout;
  for (const auto& row : rows) layout.width = std::max(layout.width, display_width(row[index]));
  for (const auto& word : words_of(column.header)) layout.width = std::max(layout.width, display_width(word));
  layout.width = std::max(layout.width, display_width(column.unit));
  layout.header = wrapped(column.header, layout.width);
  layout.header.push_back(column.unit);
  return layout;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<Layout>& layouts,
                    const Table& table) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(layouts[i].width - display_width(cells[i]), ' ');
    const bool right = table.columns[i].align == Align::right;
    line += (i ? "  " : "") + (right ? padding + cells[i] : cells[i] + padding);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// The header lines, aligned to the bottom, and the rule below. A table without units has no line for units.
std::string header_of(const std::vector<Layout>& layouts, const Table& table) {
  const bool units =
      std::any_of(table.columns.begin(), table.columns.end(), [](const auto& c) { return !c.unit.empty(); });
  std::size_t height = 0;
  for (const auto& layout : layouts) height = std::max(height, layout.header.size());
  std::string out;
  for (std::size_t line = 0; line + (units ? 0 : 1) < height; ++line) {
    std::vector<std::string> cells;
    for (const auto& layout : layouts) {
      const auto above = height - layout.header.size();
      cells.push_back(line < above ? "" : layout.header[line - above]);
    }
    out += line_of(cells, layouts, table);
  }
  std::size_t width = 0;
  for (const auto& layout : layouts) width += layout.width + 2;
  return out + std::string(width > 2 ? width - 2 : 0, '-') + "\n";
}

}  // namespace

std::string to_string(const Table& table) {
  auto rows = table.rows;
  for (auto& row : rows) {
    row.resize(table.columns.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = shortened_middle(without_controls(row[i]), static_cast<std::size_t>(table.columns[i].widest));
    }
  }
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    layouts.push_back(layout_of(table.columns[i], rows, i));
  std::string out = header_of(layouts, table);
  for (const auto& row : rows) out += line_of(row, layouts, table);
  return out;
}

}  // namespace stepcast
