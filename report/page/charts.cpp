#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "report/page/page.hpp"
#include "report/plots/style.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

std::string px(double at) {
  return fixed(at, 1);
}

namespace {

constexpr std::size_t kMostSeries = 30;
constexpr double kLeft = 80, kRight = 620, kTop = 16, kBottom = 300;  // panel of a line chart [px]

struct Mark {
  double workers = 0;
  PlottedValue y;
  bool measured = false;
};

struct Line {
  std::string name;
  std::vector<Mark> marks, published;
  std::vector<Mark> ideal = {};  ///< the two ends of ideal scaling from the first mark; empty: none
};

/// A line chart's axes.
struct Axes {
  double x0 = 1, x1 = 2, y0 = 0, y1 = 1;
  bool log_y = false;

  double x(double workers) const {
    return kLeft + (kRight - kLeft) * (std::log2(workers) - std::log2(x0)) / (std::log2(x1) - std::log2(x0));
  }
  double y(double value) const {
    const double share =
        log_y ? std::log10(std::max(value, y0) / y0) / std::log10(y1 / y0) : (value - y0) / (y1 - y0);
    return kBottom - (kBottom - kTop) * share;
  }
};

template <class Function>
void each_value(const std::vector<Line>& lines, const Function& function) {
  for (const Line& line : lines) {
    for (const auto* marks : {&line.marks, &line.published, &line.ideal}) {
      for (const Mark& mark : *marks) {
        function(mark.workers, mark.y.value);
        if (mark.y.low) function(mark.workers, *mark.y.low);
        if (mark.y.high) function(mark.workers, *mark.y.high);
      }
    }
  }
}

Axes axes_of(const std::vector<Line>& lines, bool log_y) {
  Axes axes{INFINITY, 0, INFINITY, 0, log_y};
  each_value(lines, [&](double workers, double value) {
    axes.x0 = std::min(axes.x0, workers);
    axes.x1 = std::max(axes.x1, workers);
    axes.y0 = std::min(axes.y0, value);
    axes.y1 = std::max(axes.y1, value);
  });
  if (log_y) {
    axes.y0 = std::pow(10, std::floor(std::log10(axes.y0)));
    axes.y1 = std::pow(10, std::ceil(std::log10(axes.y1 * 1.01)));
  } else {
    axes.y0 = 0;
    axes.y1 = 20 * std::ceil(std::max(axes.y1, 100.0) / 20);
  }
  return axes;
}

std::string tick(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", px(x), px(y), anchor, text);
}

std::string grid(const Axes& axes, const std::vector<Line>& lines) {
  std::string svg;
  for (double y = axes.log_y ? axes.y0 : 0; y <= axes.y1 * 1.0001; y = axes.log_y ? 10 * y : y + 20) {
    svg += fmt::format("<path class=\"grid\" d=\"M{} {}H{}\"/>", px(kLeft), px(axes.y(y)), px(kRight));
    svg += tick(kLeft - 8, axes.y(y) + 4, "end", axes.log_y ? human(y, "") : fixed(y, 0));
  }
  std::vector<double> workers;
  each_value(lines, [&](double at, double) { workers.push_back(at); });
  std::ranges::sort(workers);
  double last = -INFINITY;
  for (const double at : workers) {
    if (axes.x(at) < last + 52) continue;
    last = axes.x(at);
    svg += tick(last, kBottom + 18, "middle", fixed(at, 0));
  }
  return svg + tick((kLeft + kRight) / 2, kBottom + 38, "middle", "workers");
}

/// The band between the ends of the intervals; empty without intervals.
std::string band(const Line& line, const Axes& axes, const char* colour, double opacity) {
  std::string path, back;
  for (const Mark& mark : line.marks) {
    if (!mark.y.low || !mark.y.high) return "";
    path +=
        fmt::format("{}{} {}", path.empty() ? "M" : "L", px(axes.x(mark.workers)), px(axes.y(*mark.y.high)));
    back.insert(0, fmt::format("L{} {}", px(axes.x(mark.workers)), px(axes.y(*mark.y.low))));
  }
  return fmt::format("<path d=\"{}{}Z\" fill=\"{}\" opacity=\"{:.3g}\"/>", path, back, colour, opacity);
}

std::string path_of(const std::vector<Mark>& marks, const Axes& axes) {
  std::string path;
  for (const Mark& mark : marks)
    path +=
        fmt::format("{}{} {}", path.empty() ? "M" : "L", px(axes.x(mark.workers)), px(axes.y(mark.y.value)));
  return path;
}

/// The lines of ideal scaling, equal ones once.
std::string ideal_svg(const std::vector<Line>& lines, const Axes& axes) {
  std::set<std::string> paths;
  for (const Line& line : lines) {
    if (!line.ideal.empty()) paths.insert(path_of(line.ideal, axes));
  }
  std::string svg;
  for (const std::string& path : paths)
    svg += fmt::format("<path class=\"ideal\" d=\"{}\"><title>ideal scaling</title></path>", path);
  return svg;
}

std::string dashes_of(std::size_t i) {
  const std::string dashes = series_dashes(i);
  return dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes);
}

std::string mark_title(const Line& line, const Mark& mark, const std::string& unit, const char* kind) {
  std::string text =
      fmt::format("{}{}{} workers: {}{} {}", line.name, line.name.empty() ? "" : ", ", fixed(mark.workers, 0),
                  kind, fixed(mark.y.value, mark.y.value < 100 ? 1 : 0), unit);
  if (mark.y.low && mark.y.high)
    text += fmt::format(" [{} .. {}]", fixed(*mark.y.low, *mark.y.low < 100 ? 1 : 0),
                        fixed(*mark.y.high, *mark.y.high < 100 ? 1 : 0));
  return "<title>" + escaped(text) + "</title>";
}

/// @param opacity  of the band
std::string series_svg(const Line& line, const Axes& axes, const std::string& unit, std::size_t i,
                       double opacity) {
  const char* colour = series_colour(i);
  std::string svg = fmt::format("<g data-series=\"{}\">", i) + band(line, axes, colour, opacity) +
                    fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>",
                                path_of(line.marks, axes), colour, dashes_of(i));
  for (const Mark& mark : line.marks)
    svg +=
        fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\">{}</circle>", px(axes.x(mark.workers)),
                    px(axes.y(mark.y.value)), colour, mark_title(line, mark, unit, ""));
  return svg + "</g>";
}

/// Published and measured figures, which are drawn above the marks of all series.
std::string figures_svg(const Line& line, const Axes& axes, const std::string& unit, std::size_t i) {
  if (line.published.empty()) return "";
  std::string svg = fmt::format("<g data-series=\"{}\">", i);
  for (const Mark& mark : line.published)
    svg += fmt::format(
        "<path d=\"M{} {}l6 6l-6 6l-6 -6Z\" fill=\"{}\" stroke=\"{}\" stroke-width=\"2\">{}</path>",
        px(axes.x(mark.workers)), px(axes.y(mark.y.value) - 6), mark.measured ? "#222" : "white",
        series_colour(i), mark_title(line, mark, unit, mark.measured ? "measured " : "published "));
  return svg + "</g>";
}

/// The legend of lines. Its entries are buttons that show and hide a series, where there is JavaScript.
std::string line_legend(const std::vector<std::string>& names) {
  std::string html = "<p class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i)
    html += fmt::format(
        "<button type=\"button\" aria-pressed=\"true\" data-toggle=\"{}\"><svg class=\"line\" viewBox=\"0 0 "
        "30 "
        "10\"><path d=\"M0 5H30\" stroke=\"{}\" stroke-width=\"3\"{}/></svg>{}</button>",
        i, series_colour(i), dashes_of(i), escaped(names[i]));
  return html + "</p>";
}

/// What the marks of a line chart mean.
std::string marks_note(const std::vector<Line>& lines) {
  bool bands = false, published = false, measured = false, ideal = false;
  for (const Line& line : lines) {
    for (const Mark& mark : line.published) (mark.measured ? measured : published) = true;
    ideal = ideal || !line.ideal.empty();
    for (const Mark& mark : line.marks) bands = bands || (mark.y.low && mark.y.high);
  }
  std::string note;
  if (bands) note += "A band is the interval of the forecast, from 5 % to 95 %. ";
  if (published) note += "Open diamonds are published figures. ";
  if (measured) note += "Black diamonds are measurements, which the forecasts have learned from. ";
  if (ideal) note += "The grey dashed line is ideal scaling from the fewest workers.";
  return note.empty() ? "" : "<p class=\"note\">" + note + "</p>";
}

std::string line_chart(std::vector<Line> lines, const std::string& title, const std::string& unit,
                       bool log_y) {
  const auto useful = [&](const Mark& mark) { return mark.workers > 0 && (!log_y || mark.y.value > 0); };
  for (Line& line : lines) {
    std::erase_if(line.marks, [&](const Mark& mark) { return !useful(mark); });
    std::erase_if(line.published, [&](const Mark& mark) { return !useful(mark); });
    std::ranges::stable_sort(line.marks, {}, &Mark::workers);
  }
  std::erase_if(lines, [](const Line& line) { return line.marks.empty(); });
  const Axes axes = axes_of(lines, log_y);
  if (lines.empty() || axes.x0 == axes.x1) return "";
  const std::size_t all = lines.size();
  lines.resize(std::min(all, kMostSeries));
  std::string html =
      fmt::format("<figure class=\"chart\"><figcaption>{} [{}]</figcaption>", escaped(title), unit) +
      fmt::format("<svg viewBox=\"0 0 640 350\" role=\"img\" aria-label=\"{} against workers\">",
                  escaped(title)) +
      grid(axes, lines);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    html += series_svg(lines[i], axes, unit, i, std::min(0.15, 0.6 / lines.size()));
    names.push_back(lines[i].name);
  }
  html += ideal_svg(lines, axes);
  for (std::size_t i = 0; i < lines.size(); ++i) html += figures_svg(lines[i], axes, unit, i);
  html += "</svg>";
  if (lines.size() > 1) html += line_legend(names);
  html += marks_note(lines);
  if (all > kMostSeries) html += fmt::format("<p>{} of {} series are drawn.</p>", kMostSeries, all);
  return html + "</figure>";
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string html;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return html;
}

namespace {

/// Adds the ends of ideal scaling, from the fewest to the most workers. @param value  of the first mark, at
/// workers
template <class Value>
void add_ideal(Line& line, const Value& value) {
  const auto [few, most] = std::ranges::minmax_element(line.marks, {}, &Mark::workers);
  if (line.marks.empty() || !(few->workers > 0) || few->workers == most->workers) return;
  const Mark first = *few;
  const double last = most->workers;
  line.ideal = {{first.workers, {value(first, first.workers), {}, {}}}, {last, {value(first, last), {}, {}}}};
}

}  // namespace

std::string throughput_chart(const ScalingPlot& plot) {
  std::vector<Line> lines;
  for (const ScalingSeries& series : plot.series) {
    lines.push_back({series.name, {}, {}});
    for (const ScalingPoint& point : series.points)
      lines.back().marks.push_back({point.workers, point.throughput});
    for (const PublishedPoint& point : series.published)
      lines.back().published.push_back({point.workers, {point.throughput, {}, {}}, point.measured});
    add_ideal(lines.back(),
              [](const Mark& first, double workers) { return first.y.value * workers / first.workers; });
  }
  return line_chart(std::move(lines), "Throughput", plot.throughput_unit, true);
}

std::string efficiency_chart(const ScalingPlot& plot) {
  const auto percent = [](std::optional<double> share) {
    return share ? std::optional(100 * *share) : std::nullopt;
  };
  std::vector<Line> lines;
  for (const ScalingSeries& series : plot.series) {
    lines.push_back({series.name, {}, {}});
    for (const ScalingPoint& point : series.points) {
      if (const auto& y = point.efficiency)
        lines.back().marks.push_back({point.workers, {100 * y->value, percent(y->low), percent(y->high)}});
    }
    for (const PublishedPoint& point : series.published) {
      if (point.efficiency)
        lines.back().published.push_back({point.workers, {100 * *point.efficiency, {}, {}}, point.measured});
    }
    add_ideal(lines.back(), [](const Mark&, double) { return 100.0; });
  }
  return line_chart(std::move(lines), "Efficiency", "%", false);
}

}  // namespace stepcast
