package config

import (
	"strings"
	"time"
)

// Discover says where a pool's endpoints are found. One of its fields is set.
type Discover struct {
	File          *DiscoverFile          `yaml:"file"`
	DNS           *DiscoverDNS           `yaml:"dns"`
	InferencePool *DiscoverInferencePool `yaml:"inference_pool"`
	Service       *DiscoverService       `yaml:"service"`
}

// DiscoverFile is a file that holds endpoints, as ParseEndpoints reads it.
type DiscoverFile struct {
	Path string `yaml:"path"`
}

// DiscoverDNS is a name whose records are the endpoints.
type DiscoverDNS struct {
	Name   string `yaml:"name"`
	Record string `yaml:"record" one:"A AAAA SRV"`
	// Port is the port at each address; 0 with SRV, whose records say it.
	Port int `yaml:"port" min:"1" max:"65535"`
	// Server is who is asked; empty: those of resolv.conf.
	Server Address `yaml:"server"`
	// MinInterval and MaxInterval bound the time between two lookups, which is
	// else the records' TTL.
	MinInterval time.Duration `yaml:"min_interval" min:"100ms" max:"24h"`
	MaxInterval time.Duration `yaml:"max_interval" min:"100ms" max:"24h"`
	// KeepAbsent is how long endpoints stay when the name has no records any
	// more, KeepFailed how long when no server tells.
	KeepAbsent time.Duration `yaml:"keep_absent" min:"0s"`
	KeepFailed time.Duration `yaml:"keep_failed" min:"0s"`
}

func (d *DiscoverDNS) setDefaults() {
	*d = DiscoverDNS{
		Record: "A", MinInterval: time.Second, MaxInterval: 5 * time.Minute,
		KeepAbsent: 30 * time.Second, KeepFailed: time.Hour,
	}
}

// DiscoverInferencePool is an InferencePool, whose ready pods are the endpoints.
type DiscoverInferencePool struct {
	Name string `yaml:"name"`
	// Namespace is where it is; empty: where this runs.
	Namespace string `yaml:"namespace"`
}

// DiscoverService is a Service, whose ready endpoints they are.
type DiscoverService struct {
	Name string `yaml:"name"`
	// Namespace is where it is; empty: where this runs.
	Namespace string `yaml:"namespace"`
	// Port is the name of the Service's port; empty: the only one.
	Port string `yaml:"port"`
}

// Kubernetes says how the API server is reached.
type Kubernetes struct {
	// Kubeconfig is a file; empty: the service account of the pod.
	Kubeconfig string `yaml:"kubeconfig" change:"live"`
}

func (v *validator) discover(path string, p Pool) {
	d := p.Discover
	if d == nil {
		return
	}
	path += ".discover"
	if p.Endpoints != nil {
		v.failf(path, "stands beside endpoints; allowed: one of the two")
	}
	var set []string
	for _, source := range []struct {
		key string
		set bool
	}{{"file", d.File != nil}, {"dns", d.DNS != nil}, {"inference_pool", d.InferencePool != nil}, {"service", d.Service != nil}} {
		if source.set {
			set = append(set, source.key)
		}
	}
	switch {
	case len(set) == 0:
		v.failf(path, "names no source; allowed: one of file, dns, inference_pool, service")
	case len(set) > 1:
		v.failf(path, "names %s; allowed: one of file, dns, inference_pool, service", strings.Join(set, " and "))
	case d.File != nil && d.File.Path == "":
		v.failf(path+".file.path", "is missing; allowed: the path of a file with a list of endpoints")
	case d.DNS != nil:
		v.discoverDNS(path+".dns", *d.DNS)
	case d.InferencePool != nil:
		v.object(path+".inference_pool", d.InferencePool.Name, d.InferencePool.Namespace)
	case d.Service != nil:
		v.object(path+".service", d.Service.Name, d.Service.Namespace)
		if port := d.Service.Port; port != "" && !validLabel(port) {
			v.failf(path+".service.port", "is %q; allowed: the name of a port of the Service", port)
		}
	}
}

func (v *validator) discoverDNS(path string, d DiscoverDNS) {
	if !validDNSName(d.Name) {
		v.failf(path+".name", "%s; allowed: a name in DNS, such as vllm.default.svc.cluster.local", nameProblem(d.Name))
	}
	switch {
	case d.Record != "SRV" && d.Port == 0:
		v.failf(path+".port", "is missing; allowed: a whole number from 1 to 65535 (only SRV records say a port)")
	case d.Record == "SRV" && d.Port != 0:
		v.failf(path+".port", "is %d, and SRV records say their ports; allowed: no key", d.Port)
	}
	if d.MinInterval > d.MaxInterval {
		v.failf(path+".min_interval", "%q is more than max_interval, %q; allowed: %s or less", d.MinInterval, d.MaxInterval, d.MaxInterval)
	}
}

// object finds names that Kubernetes allows no object.
func (v *validator) object(path, name, namespace string) {
	if !validSubdomain(name) {
		v.failf(path+".name", "%s; allowed: the name of an object, of lower case letters, digits, '-' and '.'", nameProblem(name))
	}
	if namespace != "" && !validLabel(namespace) {
		v.failf(path+".namespace", "is %q; allowed: the name of a namespace, of lower case letters, digits and '-', or no key for the own", namespace)
	}
}

// validDNSName tells whether s can be asked for: labels of 1 to 63 bytes.
func validDNSName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			return !letter && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	return len(s) <= 253
}

// validSubdomain tells whether s can name an object: labels with dots between.
func validSubdomain(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !validLabel(label) {
			return false
		}
	}
	return len(s) <= 253
}

func validLabel(s string) bool {
	return s != "" && len(s) <= 63 && s[0] != '-' && s[len(s)-1] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}
