#!/usr/bin/env bash
# Builds etcd, in which Kubernetes' API server keeps its objects: $TOOLS/bin/etcd.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module=$here/etcd
version="v3.7.3 $(digest "$module"/go.mod "$module"/go.sum)"
installed etcd "$version" "$TOOLS/bin/etcd" && exit 0
begin etcd "$version" "about half a minute on two cores"
(cd "$module" && GOFLAGS='' CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$TOOLS/bin/etcd" \
	go.etcd.io/etcd/server/v3) >"$log" 2>&1
done_with
