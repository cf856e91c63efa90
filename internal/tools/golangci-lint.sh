#!/usr/bin/env bash
# Builds golangci-lint: $TOOLS/bin/golangci-lint.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

VERSION=v2.15.0

# A linter built with an older Go than the code is written for refuses it.
version="$VERSION $(go env GOVERSION)"
installed golangci-lint "$version" "$TOOLS/bin/golangci-lint" && exit 0
begin golangci-lint "$version" "about 2 minutes on two cores"
GOFLAGS='' GOBIN=$TOOLS/bin CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' \
	"github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$VERSION" >"$log" 2>&1
done_with
