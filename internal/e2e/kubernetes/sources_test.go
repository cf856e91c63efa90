//go:build e2e_k8s

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/inferspan/inferspan/processor/route/kube"
)

// config returns a kubeconfig for the space, of the administrator or as user.
func (s space) config(user string) string {
	s.t.Helper()
	file, err := plane.Kubeconfig(s.name, user)
	s.must(err)
	return file
}

// The life of a pool and its pods.
func TestInferencePool(t *testing.T) {
	s := newSpace(t)
	h := follow(t, kube.InferencePool{Name: "llama", Kubeconfig: s.config("")})
	h.await(t, "lost: there is no InferencePool "+s.name+"/llama")
	s.pool("vllm", 8000)
	h.await(t, "found")

	s.pod("vllm-0", "vllm")
	s.pod("other", "other")
	s.ready("other", "10.1.0.9", true)
	s.ready("vllm-0", "10.1.0.1", false)
	s.ready("vllm-0", "10.1.0.1", true)
	for _, what := range h.await(t, "found 10.1.0.1:8000") {
		if what != "found" {
			t.Errorf("told %q before the pod was ready", what)
		}
	}
	s.pod("vllm-1", "vllm")
	s.ready("vllm-1", "fd00::2", true)
	h.await(t, "found 10.1.0.1:8000 [fd00::2]:8000")
	s.pool("vllm", 8000, 8001)
	h.await(t, "found 10.1.0.1:8000 10.1.0.1:8001 [fd00::2]:8000 [fd00::2]:8001")
	s.pool("vllm", 8001)
	h.await(t, "found 10.1.0.1:8001 [fd00::2]:8001")

	s.ready("vllm-0", "10.1.0.1", false)
	h.await(t, "found [fd00::2]:8001")
	s.ready("vllm-0", "10.1.0.1", true)
	h.await(t, "found 10.1.0.1:8001 [fd00::2]:8001")
	s.remove("v1", "Pod", "vllm-0") // it still runs, and is still ready
	h.await(t, "found [fd00::2]:8001")
	s.gone("vllm-0")

	s.pool("other", 8001)
	h.await(t, "found 10.1.0.9:8001")
	s.remove("inference.networking.k8s.io/v1", "InferencePool", "llama")
	h.await(t, "lost: there is no InferencePool "+s.name+"/llama")
	s.pool("vllm", 8002)
	h.await(t, "found [fd00::2]:8002")
	s.apply("apiVersion: inference.networking.k8s.io/v1\nkind: InferencePool\nmetadata: {name: all}\nspec: {selector: {}, targetPorts: [{number: 80}]}")
	h = follow(t, kube.InferencePool{Name: "all", Namespace: s.name, Kubeconfig: s.config("")})
	h.await(t, "lost: the InferencePool has no `selector.matchLabels`")
}

// slice makes an EndpointSlice of the Service vllm, or changes it.
func (s space) slice(name, family, endpoints string) {
	s.t.Helper()
	s.apply(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ` + name + `, labels: {kubernetes.io/service-name: vllm}}
addressType: ` + family + `
ports: [{name: http, port: 8000, protocol: TCP}, {name: metrics, port: 9000, protocol: TCP}]
endpoints: [` + endpoints + `]
`)
}

func TestService(t *testing.T) {
	s := newSpace(t)
	h := follow(t, kube.Service{Name: "vllm", Port: "http", Kubeconfig: s.config("")})
	h.await(t, "lost: there is no EndpointSlice of a Service "+s.name+"/vllm")
	const of = `, targetRef: {kind: Pod, name: vllm-0}`
	s.slice("vllm-a", "IPv4", `{addresses: [10.1.0.1]`+of+`}, {addresses: [10.1.0.2], conditions: {ready: false}}`)
	h.await(t, "found 10.1.0.1:8000")
	s.slice("vllm-b", "IPv6", `{addresses: ["fd00::1"]`+of+`}, {addresses: ["fd00::3"]}`)
	h.await(t, "found 10.1.0.1:8000 [fd00::3]:8000")
	s.slice("vllm-a", "IPv4", `{addresses: [10.1.0.1], conditions: {ready: false, serving: true, terminating: true}`+of+`}, {addresses: [10.1.0.2], conditions: {ready: true}}`)
	h.await(t, "found 10.1.0.2:8000 [fd00::1]:8000 [fd00::3]:8000")
	s.slice("vllm-b", "IPv6", "")
	h.await(t, "found 10.1.0.2:8000")
	s.remove("discovery.k8s.io/v1", "EndpointSlice", "vllm-a")
	h.await(t, "found")

	s.slice("vllm-b", "IPv6", `{addresses: ["fd00::1"]}`)
	h = follow(t, kube.Service{Name: "vllm", Namespace: s.name, Kubeconfig: s.config("")})
	h.await(t, "failed: the Service vllm has several ports, \"http\", \"metrics\": set `port` to one")
}

// The API server goes away and comes back: what was found stays, and what has
// happened since is found.
func TestOutage(t *testing.T) {
	s := newSpace(t)
	s.pool("vllm", 8000)
	s.pod("vllm-0", "vllm")
	s.ready("vllm-0", "10.1.0.1", true)
	h := follow(t, kube.InferencePool{Name: "llama", Kubeconfig: s.config("")})
	h.await(t, "found 10.1.0.1:8000")
	plane.StopAPI()
	before := h.await(t, "failed: watch inferencepools: dial tcp ...")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	s.must(plane.StartAPI(ctx))
	s.pod("vllm-1", "vllm")
	s.ready("vllm-1", "10.1.0.2", true)
	before = append(before, h.await(t, "found 10.1.0.1:8000 10.1.0.2:8000")...)
	for _, what := range before {
		if !strings.HasPrefix(what, "failed: ") && what != "found 10.1.0.1:8000" {
			t.Errorf("told %q while there was no API server", what)
		}
	}
}

// grant applies the account and the rights that are delivered.
func (s space) grant() {
	s.t.Helper()
	var rights []*unstructured.Unstructured
	for _, u := range delivered(s.t, "inferspan.yaml", s.name) {
		if slices.Contains([]string{"ServiceAccount", "Role", "RoleBinding"}, u.GetKind()) {
			rights = append(rights, u)
		}
	}
	s.must(apply(s.t.Context(), s.name, rights))
}

// account is the user that the delivered account is.
func (s space) account() string { return "system:serviceaccount:" + s.name + ":inferspan" }

// With the account and the rights of deploy/kubernetes it works, without them
// it says what is missing, and with them again it goes on by itself.
func TestRights(t *testing.T) {
	s := newSpace(t)
	s.pool("vllm", 8000)
	s.pod("vllm-0", "vllm")
	s.ready("vllm-0", "10.1.0.1", true)
	s.slice("vllm-a", "IPv4", "{addresses: [10.1.0.1]}")
	config := s.config(s.account())
	pool := follow(t, kube.InferencePool{Name: "llama", Kubeconfig: config})
	service := follow(t, kube.Service{Name: "vllm", Port: "http", Kubeconfig: config})
	pool.await(t, fmt.Sprintf(`failed: watch inferencepools: inferencepools.inference.networking.k8s.io "llama" is forbidden: `+
		`User "system:serviceaccount:%s:inferspan" cannot watch resource "inferencepools" in API group "inference.networking.k8s.io" in the namespace "%s"`, s.name, s.name))
	service.await(t, "failed: watch endpointslices: endpointslices.discovery.k8s.io is forbidden: ...")

	s.grant()
	pool.await(t, "found 10.1.0.1:8000")
	service.await(t, "found 10.1.0.1:8000")
}
