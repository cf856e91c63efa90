#!/usr/bin/env bash
# Builds Prometheus and promtool: $TOOLS/bin/prometheus, $TOOLS/bin/promtool.
# Prometheus's own web page is no part of its Go module: the API only.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module=$here/prometheus
cmd=github.com/prometheus/prometheus/cmd
version="v0.316.0 $(digest "$module"/go.mod "$module"/go.sum)"
installed prometheus "$version" "$TOOLS/bin/prometheus" "$TOOLS/bin/promtool" && exit 0
begin prometheus "$version" "about 8 minutes on two cores"
compile prometheus $cmd/prometheus
compile promtool $cmd/promtool
done_with
