#include <fmt/format.h>

#include <algorithm>

#include "report/page/page.hpp"
#include "report/plots/style.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

namespace {

constexpr std::size_t kMostBars = 60;

struct BarPlace {
  double scale = 0;  ///< [px] of one unit of the parts
  double y = 0;      ///< [px]
};

/// The place of bar `i` of several.
BarPlace bar_place(std::size_t i, double scale) {
  return {scale, 24.0 * i + 4};
}

std::vector<const char*> colours_of(const std::vector<std::string>& parts) {
  std::vector<const char*> colours;
  for (std::size_t i = 0; i < parts.size(); ++i) colours.push_back(part_colour(parts[i], i));
  return colours;
}

/// The labels of the first bars, told apart and short enough to stand beside them.
template <class Bars>
std::vector<std::string> short_labels(const Bars& bars, std::size_t shown) {
  constexpr std::size_t kLongest = 24;  // [characters]
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < shown; ++i) labels.push_back(bars[i].label);
  labels = told_apart(std::move(labels), kLongest);
  for (std::string& label : labels) label = shortened_middle(label, kLongest);
  return labels;
}

struct Bar {
  std::string label;
  std::vector<double> parts;
  std::vector<std::string> names;  ///< of the parts, shown where the pointer is
  std::vector<const char*> colours;
  std::string sum;
};

/// One horizontal bar with its label to the left and its sum to the right.
std::string bar_svg(const Bar& bar, const BarPlace& place) {
  const auto& [label, parts, names, colours, sum] = bar;
  const auto [scale, y] = place;
  std::string svg = fmt::format("<text x=\"230\" y=\"{}\" text-anchor=\"end\">{}<title>{}</title></text>",
                                px(y + 14), escaped(label), escaped(label));
  double x = 240;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!(parts[i] > 0)) continue;
    svg +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"18\" fill=\"{}\"><title>{}</title></rect>",
                    px(x), px(y), px(scale * parts[i]), colours[i], escaped(names[i]));
    x += scale * parts[i];
  }
  return svg + fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", px(x + 6), px(y + 14), sum);
}

std::string part_legend(const std::vector<std::string>& parts) {
  std::string html = "<p class=\"legend\">";
  for (std::size_t i = 0; i < parts.size(); ++i)
    html += fmt::format("<span><span class=\"key\" style=\"background:{}\"></span>{}</span>",
                        part_colour(parts[i], i), escaped(parts[i]));
  return html + "</p>";
}

std::string bar_chart(const std::string& title, const std::string& bars, std::size_t count) {
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{0}</figcaption><svg viewBox=\"0 0 640 {1}\" role=\"img\" "
      "aria-label=\"{0}\">{2}</svg>",
      escaped(title), 24 * count + 8, bars);
}

}  // namespace

std::string breakdown_chart(const BreakdownPlot& plot) {
  if (plot.bars.empty()) return "";
  const std::size_t shown = std::min(plot.bars.size(), kMostBars);
  const auto sum = [](const BreakdownBar& bar) {
    double all = 0;
    for (const double part : bar.seconds) all += part;
    return all;
  };
  double longest = 0;
  for (std::size_t i = 0; i < shown; ++i) longest = std::max(longest, sum(plot.bars[i]));
  std::string bars;
  const auto labels = short_labels(plot.bars, shown);
  for (std::size_t i = 0; i < shown; ++i) {
    const BreakdownBar& bar = plot.bars[i];
    std::vector<std::string> names;
    for (std::size_t part = 0; part < bar.seconds.size(); ++part)
      names.push_back(
          fmt::format("{}: {}: {}", bar.label, plot.parts[part], human(Seconds{bar.seconds[part]})));
    bars += bar_svg({labels[i], bar.seconds, names, colours_of(plot.parts), human(Seconds{sum(bar)})},
                    bar_place(i, longest > 0 ? 310 / longest : 0));
  }
  std::string html =
      bar_chart("Parts of a step, by " + plot.label_name, bars, shown) + part_legend(plot.parts);
  if (shown < plot.bars.size())
    html += fmt::format("<p>{} of {} points are drawn.</p>", shown, plot.bars.size());
  return html + "</figure>";
}

std::string campaign_chart(const CampaignPlot& plot) {
  if (plot.bars.empty()) return "";
  const std::size_t shown = std::min(plot.bars.size(), kMostBars);
  const auto labels = short_labels(plot.bars, shown);
  std::string bars;
  for (std::size_t i = 0; i < shown; ++i) {
    const CampaignBar& bar = plot.bars[i];
    std::vector<std::string> names;
    for (std::size_t part = 0; part < bar.shares.size(); ++part)
      names.push_back(
          fmt::format("{}: {}: {} %", bar.label, plot.parts[part], fixed(100 * bar.shares[part], 1)));
    bars += bar_svg(
        {labels[i], bar.shares, names, colours_of(plot.parts), human(Seconds{3600 * bar.hours.value})},
        bar_place(i, 300));
  }
  std::string html = bar_chart("Makespan of the campaign, and what its devices do meanwhile", bars, shown) +
                     part_legend(plot.parts);
  if (shown < plot.bars.size())
    html += fmt::format("<p>{} of {} points are drawn.</p>", shown, plot.bars.size());
  return html + "</figure>";
}

std::string sensitivity_chart(const SensitivityPlot& plot) {
  if (plot.shares.empty()) return "";
  std::string bars;
  const std::size_t shown = std::min(plot.shares.size(), kMostBars);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [name, share] = plot.shares[i];
    const std::string text = fixed(100 * share, 1) + " %";
    bars += bar_svg({shortened_middle(name, 24),
                     {std::max(share, 0.0)},
                     {fmt::format("{}: {}", name, text)},
                     {series_colour(0)},
                     text},
                    bar_place(i, 310));
  }
  return bar_chart("Share of the variance of " + plot.result + " at " + plot.title +
                       " that each assumption explains",
                   bars, shown) +
         "</figure>";
}

}  // namespace stepcast
