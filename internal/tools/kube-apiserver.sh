#!/usr/bin/env bash
# Builds Kubernetes' API server: $TOOLS/bin/kube-apiserver.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

VERSION=v1.36.3

module=$here/kube-apiserver
version="$VERSION $(digest "$module"/go.mod "$module"/go.sum)"
installed kube-apiserver "$version" "$TOOLS/bin/kube-apiserver" && exit 0
begin kube-apiserver "$version" "about 7 minutes on two cores"
compile kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "-X k8s.io/component-base/version.gitVersion=$VERSION"
done_with
