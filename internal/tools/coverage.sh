#!/usr/bin/env bash
# coverage.sh PERCENT PACKAGE...: runs each package's own tests, and fails where
# they cover less than that many percent of it, or leave out a block of code that
# does not say why, in a comment "not covered: REASON" on one of its lines. A
# comment on a block that is covered is false, and fails too.
set -euo pipefail

least=$1
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
module=$(go list -m)
profile=$(mktemp)
trap 'rm -f "$profile"' EXIT
failed=0

# unexplained prints each block of the profile that its comments do not fit. The
# same block can stand in a profile several times.
unexplained() {
	sed -n "s|^$module/||; s|\(.*\):\([0-9]*\)\.[0-9]*,\([0-9]*\)\.[0-9]* [0-9]* \([0-9]*\)\$|\1 \2 \3 \4|p" "$profile" |
		awk '
			{ block = $1 " " $2 " " $3; hits[block] += $4 }
			function reads(file,   line, n) {
				if (file in seen) return
				seen[file] = 1
				while ((getline line < file) > 0) {
					n++
					if (line ~ /\/\/ not covered: [^ ]/) reason[file, n] = 1
				}
				close(file)
			}
			END {
				for (block in hits) {
					split(block, at, " ")
					reads(at[1])
					if (hits[block] > 0) continue
					explained = 0
					for (n = at[2]; n <= at[3]; n++)
						if ((at[1], n) in reason) { explained = 1; used[at[1], n] = 1 }
					if (!explained) print at[1] ":" at[2] ": not covered, and no reason given"
				}
				for (r in reason) if (!(r in used)) {
					split(r, at, SUBSEP)
					print at[1] ":" at[2] ": given a reason, but covered"
				}
			}' | sort
}

for package in "$@"; do
	if ! output=$(go test -count=1 -coverprofile "$profile" "./$package" 2>&1); then
		echo "$output"
		failed=1
		continue
	fi
	percent=$(go tool cover -func "$profile" | awk '/^total:/ { sub("%", "", $NF); print $NF }')
	echo "coverage: $package: $percent %"
	if awk "BEGIN { exit !($percent < $least) }"; then
		echo "coverage: $package: less than $least %" >&2
		failed=1
	fi
	open=$(unexplained)
	if [[ -n $open ]]; then
		echo "$open" >&2
		failed=1
	fi
done
exit "$failed"
