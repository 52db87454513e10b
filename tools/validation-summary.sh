#!/usr/bin/env bash
# Summarizes forecasts and real runs of FOLDER/*-measured.csv (default validate/data): a Markdown table of errors with one row
# per strategy and one for all, and how many pairs of points the forecast orders right by speed. Pairs are points of one launch
# whose measured 95 % intervals do not overlap.
# Usage: tools/validation-summary.sh [FOLDER [LAUNCHES]]; LAUNCHES: a pattern such as 'memory-*', so that ranks that compute and ranks
# that sleep are never in one figure (default: all).
set -euo pipefail
data=${1:-$(dirname "$0")/../validate/data}
shopt -s nullglob
# shellcheck disable=SC2206  # the pattern is to be expanded
files=("$data"/${2:-*}-measured.csv)
if ((${#files[@]} == 0)); then
  echo "validation-summary: no $data/${2:-*}-measured.csv; run tools/validate-all.sh first" >&2
  exit 2
fi
awk -F, '
  function size(x) { return x < 0 ? -x : x }
  function swap(i, j, t) { t = sorted[i]; sorted[i] = sorted[j]; sorted[j] = t }
  function quantile(n, q, at, low) {  # quantile of sorted[0 ... n - 1], interpolated between neighbours
    at = q * (n - 1); low = int(at)
    return sorted[low] + (low + 1 < n ? (at - low) * (sorted[low + 1] - sorted[low]) : 0)
  }
  function row(name, what, n, i, j, sum) {
    n = 0; sum = 0
    for (i = 0; i < points; ++i) if (what == "" || strategy[i] == what) { sorted[n++] = size(error[i]); sum += size(error[i]) }
    for (i = 1; i < n; ++i) for (j = i; j > 0 && sorted[j - 1] > sorted[j]; --j) swap(j - 1, j)
    printf "| %s | %d | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", name, n, 100 * sum / n, 100 * quantile(n, 0.5),
      100 * quantile(n, 0.9), 100 * sorted[n - 1]
  }
  BEGIN { points = strategies = launches = 0 }  # otherwise the first index would be the empty string
  FNR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; ++launches; next }
  {
    gsub(/"[^"]*"/, "point")  # the only quoted field; it may hold commas
    launch[points] = launches; strategy[points] = $at["strategy"]
    predicted[points] = $at["predicted_seconds"]; measured[points] = $at["measured_seconds"]
    low[points] = $at["measured_low"]; high[points] = $at["measured_high"]
    error[points] = predicted[points] / measured[points] - 1
    if (!($at["strategy"] in known)) { known[$at["strategy"]]; names[strategies++] = $at["strategy"] }
    ++points
  }
  END {
    print "| strategy | points | mean error, absolute | median | 90th percentile | largest |"
    print "|---|---|---|---|---|---|"
    for (k = 0; k < strategies; ++k) row("`" names[k] "`", names[k])
    row("all " strategies, "")
    for (a = 0; a < points; ++a) for (b = a + 1; b < points; ++b) {
      if (launch[a] != launch[b] || (low[a] <= high[b] && low[b] <= high[a])) continue
      ++pairs
      if ((predicted[a] < predicted[b]) == (measured[a] < measured[b])) ++right
    }
    printf "\n%d points of %d strategies in %d launches. Ordered right by speed: %d of %d pairs (%.1f %%).\n", points, strategies,
      launches, right, pairs, pairs ? 100 * right / pairs : 100
  }' "${files[@]}"
