#!/usr/bin/env bash
# fuzz.sh SECONDS: runs every fuzz target of the module for that long. The
# targets are found, not listed: one that is written is one that runs.
set -euo pipefail

seconds=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# once PACKAGE TARGET SECONDS runs one target.
once() {
	# Minimizing is for reading a finding, and this run only has to have it.
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$3s" -fuzzminimizetime 1s -parallel 2 "$1" >"$output" 2>&1
}

# fuzz is once, and again where the engine reported its own deadline as a failure
# of the target, without an input that fails.
fuzz() {
	once "$@" && return
	grep -q 'context deadline exceeded' "$output" && ! grep -q 'Failing input written' "$output" && once "$@"
}

last() { grep -E '^fuzz: elapsed' "$output" | tail -n 1 | sed 's/^fuzz: //'; }

# check PACKAGE TARGET runs one target, and for longer where it only went through
# what is known already: a large corpus, a busy machine.
check() {
	fuzz "$1" "$2" "$seconds" || return
	case $(last) in *'gathering baseline'*) fuzz "$1" "$2" $((6 * seconds)) ;; esac
}

count=0
while read -r file target; do
	package=./$(dirname "$file")
	if ! check "$package" "$target"; then
		cat "$output"
		echo "fuzz: $package $target failed" >&2
		exit 1
	fi
	echo "fuzz: $package $target: $(last)"
	count=$((count + 1))
done < <(grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir='.*' --exclude-dir=tools -- * |
	sed 's/:func / /' | sort)
echo "fuzz: $count targets"
