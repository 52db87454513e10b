#!/usr/bin/env bash
# Fills the table of published figures of docs/forecasts.md, and README.md's, which holds the predicted rows alone, and the
# sentence below them, from results/*/published.csv, which
#   stepcast run scenarios/*.yaml
# writes. Usage: tools/readme-table.sh [RESULTS_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
results=${1:-results}
shopt -s nullglob
files=("$results"/*/published.csv)
if ((${#files[@]} == 0)); then
  echo "readme-table: no $results/*/published.csv; run the scenarios first" >&2
  exit 2
fi

# Reads CSV of one line a row (fields may be quoted, quotes doubled) and prints rows of Markdown.
rows() {
  awk '
    function split_csv(line, fields,    n, i, c, field, quoted) {
      n = 0; field = ""; quoted = 0
      for (i = 1; i <= length(line); ++i) {
        c = substr(line, i, 1)
        if (quoted && c == "\"" && substr(line, i + 1, 1) == "\"") { field = field c; ++i }
        else if (c == "\"") quoted = !quoted
        else if (c == "," && !quoted) { fields[++n] = field; field = "" }
        else field = field c
      }
      fields[++n] = field
      return n
    }
    function value(name) { return name in at ? cell[at[name]] : "" }
    function number(text) { return text == "" ? "" : sprintf("%.3g", text) }
    function size(x) { return x < 0 ? -x : x }
    function count_figure(scenario, error, ideal) {
      ++figures
      if (!(scenario in errors)) ++experiments
      errors[scenario] = errors[scenario] " " size(error)
      if (ideal == "") return
      if (!(scenario in ideal_errors)) ++ideals
      ideal_errors[scenario] = ideal_errors[scenario] " " size(ideal)
    }
    function median(list,    n, i, j, x, sorted) {
      n = split(list, sorted, " ")
      for (i = 2; i <= n; ++i)
        for (j = i; j > 1 && sorted[j - 1] + 0 > sorted[j] + 0; --j) {
          x = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = x
        }
      return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
    }
    function over_experiments(lists,    scenario, all) {
      for (scenario in lists) all = all " " median(lists[scenario])
      return sprintf("%.1f", 100 * median(all))
    }
    function percent(text) { return text == "" ? "" : sprintf("%+.1f %%", 100 * text) }
    FNR == 1 {
      split("", at)
      count = split_csv($0, names)
      for (i = 1; i <= count; ++i) at[names[i]] = i
      next
    }
    {
      split("", cell)
      split_csv($0, cell)
      forecast = number(value("predicted"))
      if (value("low") != "") forecast = forecast " (" number(value("low")) " to " number(value("high")) ")"
      published = value("kind") == "trend" ? value("relation") : number(value("published"))
      if (value("kind") == "bound") published = value("relation") " " published
      point = value("point"); gsub(/\|/, "/", point)
      if (value("kind") == "predicted") count_figure(value("scenario"), value("error"), value("ideal_scaling_error"))
      if (value("kind") == "predicted" && value("inside") == "true") ++inside
      printf "| `%s` | %s | `%s` | %s | %s | %s | %s | %s | %s |\n", value("scenario"), point, value("column"),
        value("kind"), forecast, published, value("inside") == "true" ? "yes" : "no", percent(value("error")),
        percent(value("ideal_scaling_error"))
    }
    END {
      printf "\n%d of %d predicted figures lie inside their interval. Counting every experiment once, by the median |error| of its rows: ",
        inside, figures
      printf "median over %d experiments %s %%; ideal scaling, over the %d of them where it says anything, %s %%.\n",
        experiments, over_experiments(errors), ideals, over_experiments(ideal_errors)
    }' "$@"
}

table=$(mktemp)
short=$(mktemp)
trap 'rm -f "$table" "$short"' EXIT
{
  echo "| scenario | point | column | kind | forecast: median (5 % to 95 %) | published | inside | error | error of ideal scaling |"
  echo "|---|---|---|---|---|---|---|---|---|"
  rows "${files[@]}"
} >"$table"

tools/fill-table.sh docs/forecasts.md published "$table"
awk 'NR <= 2 || /\| predicted \|/ || !/^\|/' "$table" >"$short"
tools/fill-table.sh README.md published "$short"
echo "docs/forecasts.md: $(($(wc -l <"$table") - 4)) rows from ${#files[@]} files; README.md: those that are predicted"
