//go:build e2e_k8s

package kubernetes

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/internal/testkit"
)

// delivered reads a file of deploy/kubernetes, as it is to be applied to a
// namespace.
func delivered(t *testing.T, file, namespace string) []*unstructured.Unstructured {
	t.Helper()
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "deploy", "kubernetes", file))
	if err != nil {
		t.Fatal(err)
	}
	objects := mustDocuments(t, string(data))
	for _, u := range objects {
		if u.GetKind() == "RoleBinding" {
			subjects, _, err := unstructured.NestedSlice(u.Object, "subjects")
			if err != nil || len(subjects) != 1 {
				t.Fatalf("the subjects of the RoleBinding: %v, %v", subjects, err)
			}
			subjects[0].(map[string]any)["namespace"] = namespace
			u.Object["subjects"] = subjects
		}
	}
	return objects
}

// The API server takes every object that is delivered, and knows every field.
func TestDelivered(t *testing.T) {
	s := newSpace(t)
	s.must(apply(t.Context(), s.name, delivered(t, "inferencepool.yaml", s.name)))
	s.must(apply(t.Context(), s.name, delivered(t, "inferspan.yaml", s.name)))
	// It would tell: a field that is wrong is refused.
	wrong := delivered(t, "inferspan.yaml", s.name)
	wrong = wrong[len(wrong)-1:]
	s.must(unstructured.SetNestedField(wrong[0].Object, true, "spec", "template", "spec", "noSuchField"))
	if err := apply(t.Context(), s.name, wrong); err == nil {
		t.Error("a Deployment with a field that is none was taken")
	}
}

// The parts of the delivery agree with each other and with the program.
func TestDeliveredAgrees(t *testing.T) {
	byKind := map[string]*unstructured.Unstructured{}
	for _, u := range append(delivered(t, "inferspan.yaml", "default"), delivered(t, "inferencepool.yaml", "default")...) {
		byKind[u.GetKind()] = u
	}
	text, _, err := unstructured.NestedString(byKind["ConfigMap"].Object, "data", "inferspan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("inferspan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Spec struct {
			Replicas int `json:"replicas"`
			Template struct {
				Spec struct {
					ServiceAccountName            string `json:"serviceAccountName"`
					TerminationGracePeriodSeconds int    `json:"terminationGracePeriodSeconds"`
					Containers                    []struct {
						Args  []string `json:"args"`
						Ports []struct {
							Name          string `json:"name"`
							ContainerPort int    `json:"containerPort"`
						} `json:"ports"`
						LivenessProbe  probe `json:"livenessProbe"`
						ReadinessProbe probe `json:"readinessProbe"`
						VolumeMounts   []struct {
							MountPath string `json:"mountPath"`
							SubPath   string `json:"subPath"`
						} `json:"volumeMounts"`
					} `json:"containers"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(byKind["Deployment"].Object, &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	// docs/configuration.md: what closes after drain_timeout takes 11 s at most.
	if grace := time.Duration(pod.TerminationGracePeriodSeconds) * time.Second; grace != c.DrainTimeout+15*time.Second {
		t.Errorf("terminationGracePeriodSeconds is %s, drain_timeout %s: want 15 s more", grace, c.DrainTimeout)
	}
	if pod.ServiceAccountName != byKind["ServiceAccount"].GetName() || d.Spec.Replicas < 2 {
		t.Errorf("the account %q, %d replicas", pod.ServiceAccountName, d.Spec.Replicas)
	}
	box := pod.Containers[0]
	if got := box.Args; len(got) != 3 || filepath.Dir(got[2]) != box.VolumeMounts[0].MountPath || filepath.Base(got[2]) != "inferspan.yaml" || box.VolumeMounts[0].SubPath != "" {
		t.Errorf("the arguments %q, the mount %+v", got, box.VolumeMounts[0])
	}
	if c.Listen.Address != ":9002" || c.Admin != ":9464" || box.Ports[0].ContainerPort != 9002 || box.Ports[1].ContainerPort != 9464 {
		t.Errorf("it listens on %s and %s, the ports are %+v", c.Listen, c.Admin, box.Ports)
	}
	for want, got := range map[string]probe{"liveness": box.LivenessProbe, "readiness": box.ReadinessProbe} {
		if got.GRPC.Port != 9002 || got.GRPC.Service != want {
			t.Errorf("the probe for %s: %+v", want, got)
		}
	}
	pool := byKind["InferencePool"]
	if d := c.Pools[0].Discover; d == nil || d.InferencePool == nil || d.InferencePool.Name != pool.GetName() {
		t.Errorf("the configuration discovers %+v, the pool is %s", c.Pools[0].Discover, pool.GetName())
	}
	picker, _, err := unstructured.NestedString(pool.Object, "spec", "endpointPickerRef", "name")
	if err != nil || picker != byKind["Service"].GetName() {
		t.Errorf("the endpoint picker is %q, %v, the Service %q", picker, err, byKind["Service"].GetName())
	}
}

type probe struct {
	GRPC struct {
		Port    int    `json:"port"`
		Service string `json:"service"`
	} `json:"grpc"`
}
