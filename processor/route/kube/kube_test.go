package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/inferspan/inferspan/processor/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// from reads an object's part as the API server sends it.
func from[T any](t *testing.T, text string) (part T) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	whole(object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &part); err != nil {
		t.Fatal(err)
	}
	return part
}

// whole makes int64 of the numbers below v, as the client does.
func whole(v map[string]any) {
	for k, one := range v {
		switch one := one.(type) {
		case float64:
			v[k] = int64(one)
		case map[string]any:
			whole(one)
		case []any:
			for _, item := range one {
				if m, ok := item.(map[string]any); ok {
					whole(m)
				}
			}
		}
	}
}

func addresses(endpoints []route.Endpoint) []string {
	out := []string{}
	for _, e := range endpoints {
		out = append(out, e.Address)
	}
	slices.Sort(out)
	return out
}

func TestEndpointsOf(t *testing.T) {
	f := func(want string, pool string, pods ...string) {
		t.Helper()
		var all []pod
		for _, p := range pods {
			all = append(all, from[pod](t, p))
		}
		if got := strings.Join(addresses(endpointsOf(from[inferencePool](t, pool), all)), " "); got != want {
			t.Errorf("%s: got %q, want %q", pods, got, want)
		}
	}
	const one, two = `{"spec": {"targetPorts": [{"number": 8000}]}}`, `{"spec": {"targetPorts": [{"number": 8000}, {"number": 8001}]}}`
	const ready = `{"metadata": {}, "status": {"podIP": "10.0.0.1", "conditions": [{"type": "Initialized", "status": "False"}, {"type": "Ready", "status": "True"}]}}`
	f("10.0.0.1:8000", one, ready)
	f("10.0.0.1:8000 10.0.0.1:8001", two, ready)
	f("", one, `{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}}`)
	f("", one, `{"status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "False"}]}}`)
	f("", one, `{"status": {"podIP": "10.0.0.1"}}`)
	f("", one, `{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
	f("[fd00::7]:8000", one, `{"status": {"podIP": "fd00::7", "conditions": [{"type": "Ready", "status": "True"}]}}`)
}

func TestServiceEndpoints(t *testing.T) {
	f := func(port, want string, texts ...string) {
		t.Helper()
		var all []slice
		for _, text := range texts {
			all = append(all, from[slice](t, text))
		}
		endpoints, err := Service{Name: "vllm", Port: port}.endpoints(all)
		got := strings.Join(addresses(endpoints), " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", texts, got, want)
		}
	}
	const ports = `"ports": [{"name": "http", "port": 8000}]`
	const both = `"ports": [{"name": "metrics", "port": 9000}, {"name": "http", "port": 8000}]`
	f("", "10.0.0.1:8000 10.0.0.2:8000", `{`+ports+`, "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"], "conditions": {"ready": true}},
		{"addresses": ["10.0.0.3"], "conditions": {"ready": false, "serving": true, "terminating": true}}, {"addresses": []}]}`)
	f("http", "10.0.0.1:8000", `{`+both+`, "endpoints": [{"addresses": ["10.0.0.1"]}]}`)
	f("", `the Service vllm has several ports, "http", "metrics": set `+"`port` to one", `{`+both+`, "endpoints": []}`)
	f("grpc", `the Service vllm has no port "grpc", its ports are "http", "metrics"`, `{`+both+`, "endpoints": []}`)
	f("http", "", `{"endpoints": [], "ports": null}`)
	f("", "", `{"addressType": "FQDN", `+ports+`, "endpoints": [{"addresses": ["vllm.example.com"]}]}`)
	// One server by both families, in whatever order they come.
	four := `{"addressType": "IPv4", ` + ports + `, "endpoints": [{"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "namespace": "a", "name": "vllm-0"}}]}`
	six := `{"addressType": "IPv6", ` + ports + `, "endpoints": [{"addresses": ["fd00::1"], "targetRef": {"kind": "Pod", "namespace": "a", "name": "vllm-0"}},
		{"addresses": ["fd00::2"], "targetRef": {"kind": "Pod", "namespace": "a", "name": "vllm-1"}}]}`
	f("", "10.0.0.1:8000 [fd00::2]:8000", four, six)
	f("", "10.0.0.1:8000 [fd00::2]:8000", six, four)
	// In two slices at once, as while they are balanced.
	f("", "10.0.0.1:8000", four, four)
}

func TestString(t *testing.T) {
	for want, got := range map[string]string{
		"inference_pool llama":          InferencePool{Name: "llama"}.String(),
		"inference_pool ai/llama by /k": InferencePool{Name: "llama", Namespace: "ai", Kubeconfig: "/k"}.String(),
		"service vllm":                  Service{Name: "vllm"}.String(),
		"service ai/vllm port http":     Service{Name: "vllm", Namespace: "ai", Port: "http"}.String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestConnect_Faults(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"":         "read how to reach Kubernetes: this is no pod of a cluster; set `kubernetes.kubeconfig`",
		"/no/such": "read how to reach Kubernetes: stat /no/such: no such file or directory",
		broken:     "read how to reach Kubernetes: error loading config file",
	} {
		_, err := connect(file)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("connect(%q): %v, want %s", file, err, want)
		}
		for _, run := range []func(context.Context) error{
			func(ctx context.Context) error { return InferencePool{Kubeconfig: file}.Run(ctx, nil) },
			func(ctx context.Context) error { return Service{Kubeconfig: file}.Run(ctx, nil) },
		} {
			if err := run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("Run with %q: %v, want %s", file, err, want)
			}
		}
	}
}

// What the library logs is there for who looks for it, and else not.
func TestSetLogger(t *testing.T) {
	for level, want := range map[slog.Level]string{slog.LevelInfo: "", slog.LevelDebug: "level=DEBUG msg=hello"} {
		var out bytes.Buffer
		SetLogger(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
		klog.ErrorS(nil, "hello")
		klog.Flush()
		if got := out.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("at %s: got %q, want %q in it", level, got, want)
		}
	}
}

// What the API server says now and then is no trouble; what is, is told until a
// call succeeds, and the same as long as both of a reflector's ways fail.
func TestWatched_Note(t *testing.T) {
	w := &watched[pod]{resource: "pods", signal: make(signal, 1), failures: map[string]error{}}
	f := func(want string, verb string, err error) {
		t.Helper()
		w.note(t.Context(), verb, err)
		got := ""
		if _, _, err := w.now(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("after %s: %v: got %q, want %q", verb, err, got, want)
		}
	}
	gone := &url.Error{Op: "Get", URL: "https://10.0.0.1/api", Err: errors.New("connection refused")}
	f("list pods: connection refused", list, gone)
	f("watch pods: connection refused", follow, gone)
	f("watch pods: connection refused", list, errors.New("other"))
	f("", list, nil)
	f("", follow, apierrors.NewResourceExpired("too old"))
	f("", follow, &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}})
	f("", follow, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil))
	ended, end := context.WithCancel(t.Context())
	end()
	w.note(ended, list, gone)
	f("", list, nil)
}

// An object that can't be read makes it unknown what there is, as long as it is
// like that.
func TestWatched_Unreadable(t *testing.T) {
	w := &watched[pod]{resource: "pods", signal: make(signal, 1), failures: map[string]error{}}
	object := func(status any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "ai", "name": "vllm-0"}, "status": status,
		}}
	}
	f := func(want string, change error) {
		t.Helper()
		pods, ok, err := w.now()
		got := fmt.Sprint(len(pods), ok)
		if err != nil {
			got = err.Error()
		}
		if change != nil || !strings.HasPrefix(got, want) {
			t.Errorf("got %q, %v, want %q", got, change, want)
		}
	}
	f("0 false", nil)
	f("0 true", w.Replace(nil, "1"))
	f("1 true", w.Add(object(map[string]any{"podIP": "10.0.0.1"})))
	f("read pods ai/vllm-0: ", w.Update(object("text")))
	f("1 true", w.Update(object(map[string]any{})))
	f("read pods ai/vllm-0: ", w.Update(object("text")))
	f("0 true", w.Delete(object("text")))
}
