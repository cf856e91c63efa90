//go:build e2e_k8s

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"go.yaml.in/yaml/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/inferspan/inferspan/internal/testkit"
)

// withClient has f use an administrator's client.
func withClient(f func(dynamic.Interface) error) error {
	file, err := plane.Kubeconfig("default", "")
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport)
	api, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	return f(api)
}

// documents reads objects in YAML.
func documents(data []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc map[string]any
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		text, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		u := new(unstructured.Unstructured)
		if err := u.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		out = append(out, u)
	}
}

// applyFile applies the objects of a file, in namespace where it is not empty.
func applyFile(ctx context.Context, namespace, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	objects, err := documents(data)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return apply(ctx, namespace, objects)
}

// apply applies objects on the server, which refuses fields that it does not
// know, and waits until a kind that is new is served.
func apply(ctx context.Context, namespace string, objects []*unstructured.Unstructured) error {
	return withClient(func(api dynamic.Interface) error {
		for _, u := range objects {
			resource := resourceOf(api, u, namespace)
			var refused error
			err := testkit.Poll(ctx, func(ctx context.Context) error {
				_, err := resource.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
				if apierrors.IsNotFound(err) {
					return err // its kind is not served yet
				}
				refused = err
				return nil
			})
			if err = errors.Join(err, refused); err != nil {
				return fmt.Errorf("applying %s %s: %w", u.GetKind(), u.GetName(), err)
			}
		}
		return nil
	})
}

// resourceOf returns where u is.
func resourceOf(api dynamic.Interface, u *unstructured.Unstructured, namespace string) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	if namespace == "" {
		return api.Resource(plural)
	}
	return api.Resource(plural).Namespace(namespace)
}

var namespaces int

// space is a namespace of one test.
type space struct {
	t    *testing.T
	name string
}

// newSpace makes one.
func newSpace(t *testing.T) space {
	t.Helper()
	namespaces++
	s := space{t: t, name: fmt.Sprintf("test-%d", namespaces)}
	s.must(apply(t.Context(), "", mustDocuments(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+s.name+"}\n")))
	return s
}

func mustDocuments(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := documents([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func (s space) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// apply applies objects in YAML.
func (s space) apply(text string) {
	s.t.Helper()
	s.must(apply(s.t.Context(), s.name, mustDocuments(s.t, text)))
}

// pool applies an InferencePool llama of the pods with the label app.
func (s space) pool(app string, ports ...int) {
	s.t.Helper()
	text := "apiVersion: inference.networking.k8s.io/v1\nkind: InferencePool\nmetadata: {name: llama}\n" +
		"spec:\n  selector: {matchLabels: {app: " + app + "}}\n  targetPorts:\n"
	for _, p := range ports {
		text += fmt.Sprintf("  - {number: %d}\n", p)
	}
	s.apply(text)
}

// pod makes a pod with the label app, that is not ready yet. Its finalizer keeps
// it, while it is being deleted, as its node would.
func (s space) pod(name, app string) {
	s.t.Helper()
	s.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: " + app + "}, finalizers: [example.com/node]}\n" +
		"spec: {containers: [{name: vllm, image: vllm}], terminationGracePeriodSeconds: 30}\n")
}

// ready says what the pod's node would say of it.
func (s space) ready(name, ip string, ready bool) {
	s.t.Helper()
	condition := map[bool]string{true: "True", false: "False"}[ready]
	patch := `{"status": {"phase": "Running", "podIP": "` + ip + `", "podIPs": [{"ip": "` + ip + `"}],
		"conditions": [{"type": "Ready", "status": "` + condition + `"}]}}`
	s.on("v1", "Pod", func(r dynamic.ResourceInterface) error {
		_, err := r.Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	})
}

// remove begins to delete an object.
func (s space) remove(version, kind, name string) {
	s.t.Helper()
	s.on(version, kind, func(r dynamic.ResourceInterface) error {
		return r.Delete(s.t.Context(), name, metav1.DeleteOptions{})
	})
}

// gone ends the deletion of a pod.
func (s space) gone(name string) {
	s.t.Helper()
	s.on("v1", "Pod", func(r dynamic.ResourceInterface) error {
		_, err := r.Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		return err
	})
}

// on has f use the resource of a kind.
func (s space) on(version, kind string, f func(dynamic.ResourceInterface) error) {
	s.t.Helper()
	u := new(unstructured.Unstructured)
	u.SetAPIVersion(version)
	u.SetKind(kind)
	s.must(withClient(func(api dynamic.Interface) error { return f(resourceOf(api, u, s.name)) }))
}
