#!/usr/bin/env bash
# licences.sh DIR: lists the licences of all packages in DIR's bills of materials (*.cdx.json) by licence, as a page. It fails for a licence
# that is not allowed: everybody passes on programs under MIT, also inside closed programs.
set -euo pipefail
# They ask for their text and notices at most.
allowed='^(0BSD|Apache-2.0|BlueOak-1.0.0|BSD-2-Clause|BSD-3-Clause|ISC|MIT|MIT-0)$'
list=$(jq --raw-output '.components[] | select((.group // "") != "@spillway" and (.name | startswith("@spillway/") | not))
  | "\([.licenses[]? | .expression // .license.id // .license.name] | if . == [] then "no licence" else join(" AND ") end)\t\(
      if (.group // "") == "" then .name else "\(.group)/\(.name)" end) \(.version // "")"' "$1"/*.cdx.json | LC_ALL=C sort --unique)
# Every side of an AND must be met, by one side of an OR; old crates write a slash. Nested parentheses are refused.
refused=$(awk -F '\t' -v allowed="$allowed" '{
  sides = split($1, side, / AND /)
  met = sides > 0 && $1 !~ /\(.*\(/
  for (i = 1; i <= sides; i++) {
    gsub(/^\(|\)$/, "", side[i])
    one = 0
    choices = split(side[i], choice, / OR |\//)
    for (j = 1; j <= choices; j++) one = one || choice[j] ~ allowed
    met = met && one
  }
  if (!met) print $2 " (" $1 ")"
}' <<<"$list")
[ -z "$refused" ] || { printf 'Licences that infra/release/licences.sh does not allow:\n%s\n' "$refused" >&2; exit 1; }
awk -F '\t' 'BEGIN { print "# Licences of what Spillway contains" }
  $1 != last { printf "\n## %s\n\n", $1; last = $1 } { print "- " $2 }' <<<"$list"
