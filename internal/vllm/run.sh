#!/usr/bin/env bash
# run.sh: the comparison with a real vLLM. It writes what it found into docs/vllm-comparison.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=${TOOLS:-$root/.tools}/vllm
"$here/install.sh" "$dir"
cd "$root"
INFERSPAN_VLLM=$dir INFERSPAN_REPORT=$root/docs/vllm-comparison.md \
	go test -count=1 -tags vllm -timeout 20m -v ./internal/vllm/...
