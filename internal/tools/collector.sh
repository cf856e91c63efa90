#!/usr/bin/env bash
# Builds the OpenTelemetry Collector of collector/: $TOOLS/bin/collector.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module=$here/collector
version="v0.161.0 $(digest "$module"/go.mod "$module"/go.sum "$module"/main.go)"
installed collector "$version" "$TOOLS/bin/collector" && exit 0
begin collector "$version" "about 3 minutes on two cores"
compile collector .
done_with
