package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// retry is how long a reflector waits before it tries again.
var retry = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 10 * time.Second}

// watched are the objects of one resource that a selection holds, each as the
// part T of it, as they are now. It is the store of a reflector.
type watched[T any] struct {
	resource string // for errors
	signal   signal
	stop     func() // ends the reflector, and returns when it has ended

	mu    sync.Mutex
	parts map[string]part[T] // by the object's name; nil until the first list
	// failures are why the API server can't be followed, by what it was asked
	// for. A reflector tries the one after the other.
	failures map[string]error
}

// What the API server is asked for.
const (
	list   = "list"
	follow = "watch"
)

// part is a T, or why it can't be read.
type part[T any] struct {
	T   T
	err error
}

// signal says that something may have changed. What has not been taken yet is
// not said twice.
type signal chan struct{}

func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// each calls tell whenever s is raised, until ctx, of following, ends. It returns
// why that was: nil where it was to.
func (s signal) each(ctx context.Context, tell func()) error {
	for {
		select {
		case <-ctx.Done():
			return failure(ctx)
		case <-s:
			tell()
		}
	}
}

// watchObjects begins to follow the objects of a namespace that narrow selects.
func watchObjects[T any](ctx context.Context, c *cluster, resource schema.GroupVersionResource, namespace string,
	s signal, narrow func(*metav1.ListOptions),
) *watched[T] {
	ctx, cancel := context.WithCancel(ctx)
	w := &watched[T]{resource: resource.Resource, signal: s, failures: map[string]error{}}
	api := c.Resource(resource).Namespace(namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			narrow(&o)
			objects, err := api.List(ctx, o)
			w.note(ctx, list, err)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			narrow(&o)
			events, err := api.Watch(ctx, o)
			w.note(ctx, follow, err)
			return events, err
		},
	}
	backoff := retry
	r := cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, w, cache.ReflectorOptions{
		Name: "inferspan", TypeDescription: resource.Resource, Backoff: &backoff,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer w.recovered(c.broke)
		r.RunWithContext(ctx)
	}()
	w.stop = func() { cancel(); <-ended }
	return w
}

// recovered takes a panic of the reflector, or of what it calls here, for its
// source's: on this goroutine it would end the process, as the library lets it
// go on. The source can be run again, and begins with a list.
func (w *watched[T]) recovered(broke context.CancelCauseFunc) {
	if p := recover(); p != nil {
		broke(fmt.Errorf("follow %s: panic: %v", w.resource, p))
	}
}

// note takes what became of a call of the API server.
func (w *watched[T]) note(ctx context.Context, verb string, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		// The end, or a version that has gone, or a server that can't begin a
		// watch with a list: it is listed.
		return
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // its URL is long, and another each time
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", verb, w.resource, err)
	}
	w.mu.Lock()
	if err == nil {
		clear(w.failures)
	} else {
		w.failures[verb] = err
	}
	w.mu.Unlock()
	w.signal.raise()
}

// now returns the objects' parts. ok is false before the first list, and with an
// error, which says why they may be out of date.
func (w *watched[T]) now() (parts []T, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := cmp.Or(w.failures[follow], w.failures[list]); err != nil {
		return nil, false, err
	}
	for _, p := range w.parts {
		if p.err != nil {
			return nil, false, p.err
		}
		parts = append(parts, p.T)
	}
	return parts, w.parts != nil, nil
}

// set keeps the part of one object. w.mu is held.
func (w *watched[T]) set(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return // the reflector checks types: it never gets here
	}
	var p part[T]
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &p.T); err != nil {
		p.err = fmt.Errorf("read %s %s: %w", w.resource, object(u.GetNamespace(), u.GetName()), err)
	}
	w.parts[u.GetName()] = p
}

// Add implements cache.ReflectorStore.
func (w *watched[T]) Add(obj any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(obj)
	w.signal.raise()
	return nil
}

// Update implements cache.ReflectorStore.
func (w *watched[T]) Update(obj any) error { return w.Add(obj) }

// Delete implements cache.ReflectorStore.
func (w *watched[T]) Delete(obj any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		delete(w.parts, u.GetName())
	}
	w.signal.raise()
	return nil
}

// Replace implements cache.ReflectorStore.
func (w *watched[T]) Replace(all []any, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parts = make(map[string]part[T], len(all))
	for _, obj := range all {
		w.set(obj)
	}
	w.signal.raise()
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *watched[T]) Resync() error { return nil }
