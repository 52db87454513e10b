#!/usr/bin/env bash
# From results/*/published.csv, which "stepcast run scenarios/*.yaml" writes: writes all published figures and their forecasts to
# docs/reference/published-figures.csv, and fills the tables of docs/reference/published-figures.md by experiment and by kind, and then
# the table of README.md. Usage: tools/readme-table.sh [RESULTS_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
results=${1:-results}
shopt -s nullglob
files=("$results"/*/published.csv)
if ((${#files[@]} == 0)); then
  echo "readme-table: no $results/*/published.csv; run the scenarios first" >&2
  exit 2
fi

# What the table of experiments calls the experiment of a scenario; without an entry here it has the scenario's name. Scenarios of one name
# share a row, unless one is blind and the other is not.
titles() {
  cat <<'END'
asgd-4gpu|Asynchronous SGD of a speech network, 4 GPUs (Zhang et al. 2013)
chen-huo-dblstm|Model averaging and BMUF of two speech networks, 8 to 64 K40 (Chen and Huo 2016)
chen-huo-dnn-bmuf|Model averaging and BMUF of two speech networks, 8 to 64 K40 (Chen and Huo 2016)
gan-12-p100|3DGAN, 12 P100 (abstract, see the file)
goyal-imagenet-1h|ResNet-50 in one hour, 256 P100 (Goyal et al. 2017)
fastai-imagenet-18-minutes|ResNet-50 on one P100, and ImageNet in 18 minutes on 128 V100 (Gonzalez, lecture)
goyal-one-gpu|ResNet-50 on one P100, and ImageNet in 18 minutes on 128 V100 (Gonzalez, lecture)
goyal-ring-halving-doubling|Ring against halving-doubling, 32 servers (Goyal et al. 2017)
megatron-tensor|Tensor parallelism of GPT-2, 2 to 8 V100 (Megatron-LM 1.0)
nnlo-rnn-downpour|Downpour SGD of a recurrent network, 8 and 20 workers (Vlimant et al.)
seide-20-gpus|1-bit SGD of a speech network, 20 K20X (Chen and Huo, slides)
seide-1bit|1-bit SGD of a speech network, 8 K20X (Seide et al. 2014)
END
}

# Reads CSV of one line a row (fields may be quoted, quotes doubled) and prints Markdown or CSV. With WHAT "experiments": a row for
# each scenario with predicted figures, and sentences that sum them up. Else: a CSV row for each figure of the kind WHAT.
rows() {  # WHAT FILE...
  local what=$1
  shift
  awk -v what="$what" -v titles="$(titles)" '
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
    function read_titles(    n, i, lines, part) {
      n = split(titles, lines, "\n")
      for (i = 1; i <= n; ++i) { split(lines[i], part, "|"); title[part[1]] = part[2] }
    }
    function count_figure(scenario, error, ideal, is_inside, is_blind,    name) {
      name = (scenario in title ? title[scenario] : scenario) "|" is_blind
      ++figures[is_blind]; ++figures_of[name]
      if (is_inside) { ++inside[is_blind]; ++inside_of[name] }
      if (!(name in errors)) experiment[++experiments] = name
      if (index(scenarios[name], "`" scenario "`") == 0)
        scenarios[name] = scenarios[name] (scenarios[name] == "" ? "" : ", ") "`" scenario "`"
      blind[name] = is_blind
      errors[name] = errors[name] " " size(error)
      if (ideal != "") ideal_errors[name] = ideal_errors[name] " " size(ideal)
    }
    function median(list,    n, i, j, x, sorted) {
      n = split(list, sorted, " ")
      for (i = 2; i <= n; ++i)
        for (j = i; j > 1 && sorted[j - 1] + 0 > sorted[j] + 0; --j) {
          x = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = x
        }
      return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
    }
    function over_experiments(lists, is_blind,    name, all) {
      for (name in lists) if (blind[name] == is_blind) all = all " " median(lists[name])
      return all == "" ? "-" : sprintf("%.1f %%", 100 * median(all))
    }
    function count_experiments(lists, is_blind,    name, n) {
      for (name in lists) n += blind[name] == is_blind
      return n + 0
    }
    function percent(text) { return text == "" ? "" : sprintf("%.1f", 100 * text) }
    function quoted(text) { return text ~ /,/ ? "\"" text "\"" : text }
    function median_percent(list) { return sprintf("%.1f %%", 100 * median(list)) }
    function print_experiments(    i, name) {
      for (i = 1; i <= experiments; ++i) {
        name = experiment[i]
        printf "| %s | %s | %s | %d of %d | %s | %s |\n", substr(name, 1, length(name) - 2), scenarios[name], blind[name] ? "yes" : "no",
          inside_of[name], figures_of[name], median_percent(errors[name]), name in ideal_errors ? median_percent(ideal_errors[name]) : ""
      }
    }
    BEGIN { read_titles() }
    FNR == 1 {
      split("", at)
      count = split_csv($0, names)
      for (i = 1; i <= count; ++i) at[names[i]] = i
      next
    }
    {
      split("", cell)
      split_csv($0, cell)
      published = value("kind") == "trend" ? value("relation") : number(value("published"))
      decision = value("inside") == "true" ? "yes" : value("inside") == "open" ? "open" : "no"
      share = value("share_of_draws")
      if (share != "" && share > 0 && share < 1) decision = sprintf("%s (%.0f %%)", decision, 100 * share)
      if (value("kind") == "bound") published = value("relation") " " published
      if (value("margin") != "") decision = decision sprintf(", x %.3g", value("margin"))
      point = value("point"); gsub(/\|/, "/", point)
      if (value("kind") == "predicted" && value("counted") == "true")
        count_figure(value("scenario"), value("error"), value("ideal_scaling_error"), value("inside") == "true", value("tuned") == "")
      if (value("counted") == "false") decision = decision ", not counted"
      if (value("kind") == what) printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", value("scenario"), quoted(point), value("column"),
        value("kind"), number(value("predicted")), number(value("low")), number(value("high")), quoted(published), quoted(decision),
        percent(value("error")), percent(value("ideal_scaling_error"))
    }
    END {
      if (what != "experiments") exit
      print_experiments()
      printf "\nBlind forecasts: %d of %d figures of %d experiments lie inside their interval. The median over these experiments of the median error is %s\n",
        inside[1], figures[1], count_experiments(errors, 1), over_experiments(errors, 1)
      printf "(ideal scaling, which applies to %d of them: %s).\n", count_experiments(ideal_errors, 1), over_experiments(ideal_errors, 1)
      printf "Forecasts that are not blind: %d of %d figures of %d experiments lie inside, and the same median is %s (ideal scaling, %d experiments: %s).\n",
        inside[0], figures[0], count_experiments(errors, 0), over_experiments(errors, 0), count_experiments(ideal_errors, 0),
        over_experiments(ideal_errors, 0)
    }' "$@"
}

page=docs/reference/published-figures.md
csv=docs/reference/published-figures.csv
table=$(mktemp)
trap 'rm -f "$table"' EXIT

{
  echo "scenario,point,column,kind,forecast,low,high,published,inside,error_percent,ideal_error_percent"
  for kind in predicted fitted bound trend; do rows "$kind" "${files[@]}"; done
} >"$csv"
tools/published-kinds.py >"$table"
tools/fill-table.sh "$page" published-kinds "$table"
{
  echo "| experiment | scenario | blind | figures inside the interval | median \|error\| | of ideal scaling |"
  echo "|---|---|---|---|---|---|"
  rows experiments "${files[@]}"
} >"$table"
tools/fill-table.sh "$page" published-experiments "$table"
echo "$page: $(grep -c '^| .*`' "$table") experiments"
tools/readme-summary.py
