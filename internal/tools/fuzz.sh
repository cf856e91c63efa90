#!/usr/bin/env bash
# fuzz.sh DURATION: runs every fuzz target of the module for that long. The
# targets are found, not listed: one that is written is one that runs.
set -euo pipefail

duration=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT

fuzz() {
	# Minimizing is for reading a finding, and this run only has to have it.
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$duration" -fuzzminimizetime 1s -parallel 2 "$1" >"$output" 2>&1
}

count=0
while read -r file target; do
	package=./$(dirname "$file")
	# The fuzzing engine can report its own deadline as a failure of the target,
	# without an input that fails: once more tells the two apart.
	if ! fuzz "$package" "$target"; then
		if ! grep -q 'context deadline exceeded' "$output" || grep -q 'Failing input written' "$output" || ! fuzz "$package" "$target"; then
			cat "$output"
			echo "fuzz: $package $target failed" >&2
			exit 1
		fi
	fi
	echo "fuzz: $package $target: $(grep -E '^fuzz: elapsed' "$output" | tail -n 1 | sed 's/^fuzz: //')"
	count=$((count + 1))
done < <(grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir='.*' --exclude-dir=tools -- * |
	sed 's/:func / /' | sort)
echo "fuzz: $count targets, $duration each"
