#!/usr/bin/env bash
# Builds Jaeger's all-in-one: $TOOLS/bin/jaeger. Its web page is no part of its
# Go module: storage and API only.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module=$here/jaeger
version="v1.76.0 $(digest "$module"/go.mod "$module"/go.sum)"
installed jaeger "$version" "$TOOLS/bin/jaeger" && exit 0
begin jaeger "$version" "about 5 minutes on two cores"
compile jaeger github.com/jaegertracing/jaeger/cmd/all-in-one
done_with
