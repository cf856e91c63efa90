#!/usr/bin/env bash
# Builds etcd, in which Kubernetes' API server keeps its objects: $TOOLS/bin/etcd.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module=$here/etcd
version="v3.7.3 $(digest "$module"/go.mod "$module"/go.sum)"
installed etcd "$version" "$TOOLS/bin/etcd" && exit 0
begin etcd "$version" "about half a minute on two cores"
compile etcd go.etcd.io/etcd/server/v3
done_with
