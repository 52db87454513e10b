#include "report/text/display_text.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/text.hpp"

namespace stepcast {
namespace {

/// The kind of JSON of all files of report/; a second kind would take seconds to compile.
using Json = nlohmann::ordered_json;

}  // namespace

std::string json_text(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

bool starts_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

/// The number of bytes of the first `count` code points.
std::size_t byte_after(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  while (end < text.size() && (count > 0 || !starts_code_point(text[end]))) {
    count -= starts_code_point(text[end++]) ? 1 : 0;
  }
  return end;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return std::count_if(text.begin(), text.end(), starts_code_point);
}

std::string without_controls(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char byte = text[i];
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool c1 =
        byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F are control characters too
    out += byte < 0x20 || byte == 0x7F || c1 ? '?' : text[i];
    i += c1 ? 1 : 0;
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  return Json::parse(json_text(text)).get<std::string>();
}

std::string shortened(std::string_view text, std::size_t width) {
  if (width == 0 || display_width(text) <= width) return std::string(text);
  const std::string_view dots = width > 3 ? "..." : "";
  return std::string(text.substr(0, byte_after(text, width - dots.size()))) + std::string(dots);
}

std::string shortened_middle(std::string_view text, std::size_t width) {
  const std::size_t full_width = display_width(text);
  if (full_width <= width || width < 5) return shortened(text, width);
  const std::size_t tail = (width - 3) / 2;
  const std::size_t head = width - 3 - tail;
  return std::string(text.substr(0, byte_after(text, head))) + "..." +
         std::string(text.substr(byte_after(text, full_width - tail)));
}

namespace {

constexpr std::string_view kWordEnds = " ,;/";

/// Bytes of whole words that all texts begin with.
std::size_t common_start(const std::vector<std::string>& texts) {
  std::string_view same = texts.front();
  for (const std::string& text : texts)
    same = same.substr(0, std::ranges::mismatch(same, text).in1 - same.begin());
  const auto last = same.find_last_of(kWordEnds);
  return last == std::string_view::npos ? 0 : last + 1;
}

}  // namespace

std::vector<std::string> told_apart(std::vector<std::string> texts, std::size_t width) {
  const auto fits = [&](const std::string& text) { return width == 0 || display_width(text) <= width; };
  const auto same = [&](const std::string& text) { return text == texts.front(); };
  if (std::ranges::all_of(texts, fits) || std::ranges::all_of(texts, same)) return texts;
  const std::string dots = "...";
  for (int side = 0; side < 2; ++side) {  // the beginnings, then those of the reversed texts
    const std::size_t start = common_start(texts);
    for (std::string& text : texts) {
      if (start > dots.size()) text = dots + text.substr(start);
      std::ranges::reverse(text);
    }
  }
  return texts;
}

namespace {

struct UnitScale {
  double factor;
  std::string_view unit;
};

/// The largest scale that `value` reaches after rounding to three digits, or the first scale if it reaches
/// none.
UnitScale scale_of(double value, const UnitScale* first, const UnitScale* last) {
  UnitScale best = *first;
  for (const UnitScale* scale = first; scale != last; ++scale) {
    if (std::abs(value) >= 0.9995 * scale->factor) best = *scale;
  }
  return best;
}

std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  const double rounded = magnitude * (1 + 5e-4);
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(rounded)));
  return fixed(value, std::clamp(decimals, 0, 6));
}

template <std::size_t N>
std::string scaled(double value, const std::array<UnitScale, N>& scales, std::string_view unit) {
  if (!std::isfinite(value)) return "-";
  const UnitScale scale = scale_of(value, scales.data(), scales.data() + N);
  const auto suffix = fmt::format("{}{}", scale.unit, unit);
  return three_digits(value / scale.factor) + (suffix.empty() ? "" : " ") + suffix;
}

}  // namespace

std::string human(double value, std::string_view unit) {
  static constexpr std::array<UnitScale, 6> kScales{
      {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}}};
  return scaled(value, kScales, unit);
}

std::string human(Seconds time) {
  static constexpr std::array<UnitScale, 7> kScales{
      {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}, {100, "s"}, {600, "min"}, {3600, "h"}}};
  if (time.value == 0) return "0 s";
  if (std::abs(time.value) >= 2 * 86400.0)
    return scaled(time.value, std::array<UnitScale, 1>{{{86400, "d"}}}, "");
  UnitScale scale = scale_of(time.value, kScales.data(), kScales.data() + kScales.size());
  if (!std::isfinite(time.value)) return "-";
  if (scale.unit == "s") scale.factor = 1;
  if (scale.unit == "min") scale.factor = 60;
  return fmt::format("{} {}", three_digits(time.value / scale.factor), scale.unit);
}

std::string human(Bytes bytes) {
  static constexpr std::array<UnitScale, 5> kScales{
      {{1, "B"}, {1024, "KiB"}, {1048576, "MiB"}, {1073741824, "GiB"}, {1099511627776, "TiB"}}};
  return scaled(bytes.value, kScales, "");
}

std::string fixed(double value, int decimals) {
  const auto text = fmt::format("{:.{}f}", value, decimals);
  return text.find_first_not_of("-0.") == std::string::npos ? fmt::format("{:.{}f}", 0.0, decimals) : text;
}

namespace {

/// Words wrapped into lines of at most `width` characters; a longer word gets its own line.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (const auto& word : split_words(text)) {
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
  for (const auto& word : split_words(column.header))
    layout.width = std::max(layout.width, display_width(word));
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
      row[i] = shortened_middle(without_controls(row[i]), table.columns[i].widest);
    }
  }
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    layouts.push_back(layout_of(table.columns[i], rows, i));
  std::string out = header_of(layouts, table);
  for (const auto& row : rows) out += line_of(row, layouts, table);
  return out;
}

namespace {

/// Widths of all columns as to_string prints them.
std::vector<std::size_t> widths_of(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::vector<std::vector<std::string>> cells;
    for (const auto& row : table.rows)
      cells.push_back({shortened_middle(i < row.size() ? row[i] : "", table.columns[i].widest)});
    widths.push_back(layout_of(table.columns[i], cells, 0).width);
  }
  return widths;
}

/// The table with the cells of its last column in lines of at most `width` characters.
Table with_wrapped_end(const Table& table, std::size_t width) {
  Table wrapped_table{table.columns, {}};
  for (auto row : table.rows) {
    row.resize(table.columns.size());
    auto lines = wrapped(row.back(), width);
    if (lines.empty()) lines.emplace_back();
    for (const std::string& line : lines) {
      row.back() = line;
      wrapped_table.rows.push_back(row);
      row.assign(row.size(), "");
    }
  }
  return wrapped_table;
}

Table with_columns(const Table& table, const std::vector<std::size_t>& chosen) {
  Table part;
  for (const std::size_t i : chosen) part.columns.push_back(table.columns[i]);
  for (const auto& row : table.rows) {
    part.rows.emplace_back();
    for (const std::size_t i : chosen) part.rows.back().push_back(i < row.size() ? row[i] : "");
  }
  return part;
}

}  // namespace

std::string to_string(const Table& table, int width) {
  constexpr std::size_t kNarrowest = 24;  // of a column of text that is wrapped
  const std::vector<std::size_t> widths = widths_of(table);
  const std::size_t most = width;
  const std::size_t all = std::accumulate(widths.begin(), widths.end(),
                                          2 * (widths.size() - std::min<std::size_t>(1, widths.size())));
  if (width <= 0 || all <= most) return to_string(table);
  const std::size_t others = all - widths.back();
  if (table.columns.back().align == Align::left && others + kNarrowest <= most)
    return to_string(with_wrapped_end(table, most - others));
  std::string text;
  for (std::size_t next = 1; next < widths.size();) {
    std::vector<std::size_t> chosen{0};
    std::size_t used = widths[0];
    do {
      used += 2 + widths[next];
      chosen.push_back(next++);
    } while (next < widths.size() && used + 2 + widths[next] <= most);
    text += (text.empty() ? "" : "\n") + to_string(with_columns(table, chosen));
  }
  return text;
}

int terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

}  // namespace stepcast
