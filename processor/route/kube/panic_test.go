package kube

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/inferspan/inferspan/processor/route/discover"
)

// fakeAPI is a cluster of one resource.
type fakeAPI struct {
	dynamic.NamespaceableResourceInterface

	list   func() (*unstructured.UnstructuredList, error)
	events watch.Interface
}

func (f fakeAPI) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return f
}

func (f fakeAPI) Namespace(string) dynamic.ResourceInterface { return f }

func (f fakeAPI) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return f.list()
}

func (f fakeAPI) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil) // it can't begin with a list
	}
	return f.events, nil
}

// fragile is a part that can't be read without a panic where it is a text.
type fragile struct {
	Status bomb `json:"status"`
}

type bomb struct{}

func (*bomb) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		panic("injected")
	}
	return nil
}

func podWith(status any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "status": status,
		"metadata": map[string]any{"namespace": "ai", "name": "vllm-0", "resourceVersion": "1"},
	}}
}

func listOf(items ...*unstructured.Unstructured) func() (*unstructured.UnstructuredList, error) {
	return func() (*unstructured.UnstructuredList, error) {
		all := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}}
		for _, i := range items {
			all.Items = append(all.Items, *i)
		}
		return all, nil
	}
}

// A panic over what the API server says, be it in asking or in taking the answer,
// ends its source and not the process.
func TestPanicsEndAtTheirSource(t *testing.T) {
	const want = "follow pods: panic: injected"
	SetLogger(slog.DiscardHandler) // the library tells of it, too
	for name, api := range map[string]fakeAPI{
		"list":    {list: func() (*unstructured.UnstructuredList, error) { panic("injected") }},
		"replace": {list: listOf(podWith("text"))},
		"add":     {list: listOf(), events: one(watch.Added)},
		"update":  {list: listOf(podWith(map[string]any{})), events: one(watch.Modified)},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{Interface: api}
			ctx, end := c.following(t.Context())
			defer end()
			w := watchObjects[fragile](ctx, c, podResource, "ai", make(signal, 1), func(*metav1.ListOptions) {})
			<-ctx.Done()
			w.stop()
			if err := failure(ctx); err == nil || err.Error() != want {
				t.Errorf("the source ended with %v, want %s", err, want)
			}
			if _, _, err := w.now(); err != nil { // what holds the store was let go
				t.Errorf("the objects are unknown: %v", err)
			}
		})
	}
}

// one is a watch that tells of one event.
func one(kind watch.EventType) watch.Interface {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
	events.Action(kind, podWith("text"))
	return events
}

// Both sources end by such a panic, so that they are run again, and else without
// a failure.
func TestSourcesEndByTheirReflectors(t *testing.T) {
	SetLogger(slog.DiscardHandler)
	for name, follow := range map[string]func(context.Context, *cluster, discover.Sink) error{
		"inferencepools": InferencePool{Name: "llama"}.follow,
		"endpointslices": Service{Name: "vllm"}.follow,
	} {
		c := &cluster{Interface: fakeAPI{list: func() (*unstructured.UnstructuredList, error) { panic("injected") }}}
		want := "follow " + name + ": panic: injected"
		if err := follow(t.Context(), c, silent{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := follow(ended, c, silent{}); err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
	}
}

// silent hears failures, and nothing else.
type silent struct{ discover.Sink }

func (silent) Failed(error) {}
