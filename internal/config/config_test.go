package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the messages found beside the invalid files")

// Every message has a file that provokes it: testdata/invalid-NAME.yaml, with
// the messages beside it in invalid-NAME.txt.
func TestParse_Invalid(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no invalid files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, err := Load(file)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Load: %v, want a *Error", err)
			}
			got := e.Error() + "\n"
			beside := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *rewrite {
				if err := os.WriteFile(beside, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(beside)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// poolOf is a pool of which nothing else is said.
func poolOf(name string, addresses ...Address) Pool {
	p := Pool{Name: name, Endpoints: []Endpoint{}}
	for _, a := range addresses {
		p.Endpoints = append(p.Endpoints, Endpoint{Address: a, Weight: 1})
	}
	p.setDefaults()
	return p
}

func TestParse_Valid(t *testing.T) {
	smallest := Default()
	smallest.Pools = []Pool{poolOf("default", "127.0.0.1:8001", "127.0.0.1:8002")}

	models := Default()
	models.Pools = []Pool{
		poolOf("default", "127.0.0.1:8001"),
		poolOf("canary"),
	}
	models.Models = []Model{{Name: "llama", Aliases: []string{"gpt-4"}, Prefixes: []string{"llama-"}, Targets: []Target{
		{Pool: "default", Model: "llama-v2", Weight: 90},
		{Pool: "canary", Weight: 10},
	}}}

	all := Config{
		Listen:       Listen{Network: "unix", Address: "/run/inferspan.sock"},
		Admin:        "[::1]:9464",
		DrainTimeout: 2 * time.Minute,
		Pools: []Pool{
			poolOf("default", "127.0.0.1:8001", "[fd00::7]:8000"),
			{
				Name: "again", Endpoints: []Endpoint{{"127.0.0.1:8001", 1}, {"[fd00::7]:8000", 1}},
				Policy: "prefix", FallbackEndpoints: 3, LoadBound: 1.5,
				Eject:  Eject{FailureShare: 0.75, Time: 5 * time.Second, MaxTime: time.Minute, MaxShare: 1},
				Scrape: Scrape{Interval: time.Second, Timeout: 300 * time.Millisecond, Path: "/m?name[]=vllm:num_requests_running", Port: 9100},
				Health: Health{Interval: 10 * time.Second, Timeout: 2 * time.Second, Path: "/ping", Port: 9101, Failures: 5},
				Shed:   Shed{InFlight: 32, Queue: 8, KVUsage: 0.9, Hard: Limits{InFlight: 64, Queue: 16, KVUsage: 0.98}},
			},
		},
		Models: []Model{{Name: "7", Targets: []Target{
			{Pool: "default", Weight: 1},
			{Pool: "again", Model: "big", Weight: 0},
		}}},
		Kubernetes: Kubernetes{Kubeconfig: "/k"},
		Trace: Trace{
			ClientContext: "link", ParentSampled: "ignore", UpstreamSampled: "always",
			Detail: "off", EngineSpans: "on", Events: "both", ChunkEvents: ChunkEvents{Max: 16},
			Keep: Keep{
				Share: 0.05, Always: []KeepPolicy{"failed", "slow"},
				Slow: Thresholds{TTFT: 2 * time.Second, TPOT: 50 * time.Millisecond, Duration: time.Minute},
			},
		},
		Attributes: Attributes{FromHeaders: []HeaderAttribute{
			{Header: "X-Team", Attribute: "team", MetricValues: 20}, {Header: "x-user", Attribute: "user"},
		}},
		Metrics: Metrics{Client: "1.41"},
		SLO: []SLO{
			{
				Name: "fast", Match: SLOMatch{Operation: "chat", Model: "big", Pool: "again"},
				TTFT: 500 * time.Millisecond, TPOT: 30 * time.Millisecond, Duration: 20 * time.Second, Target: 0.9,
			},
			{Name: "all", TTFT: 2 * time.Second, Target: 0.99},
		},
		Trusted:  Trusted{Header: "x-inferspan-secret", Value: "open"},
		Journal:  Journal{MaxBytes: gib},
		Exchange: Exchange{IdleTimeout: time.Hour},
		ExtProc: ExtProc{
			DeferredCloseTimeout: 250 * time.Millisecond,
			AssumeMode:           AssumeMode{RequestBodyMode: "FULL_DUPLEX_STREAMED", ResponseBodyMode: "NONE"},
		},
		Handover: Handover{KeyFile: "testdata/handover.key"},
		Request:  Request{HoldLimit: 512 * kib, HoldTotal: 4 * gib, PoolHeader: true, SessionHeaders: []string{"x-chat", "x-session-id"}},
		Response: Response{Compression: "prevent"},
		Usage:    Usage{Ask: "auto"},
		Record:   Record{Dir: "/var/lib/inferspan", MaxBytes: 2 * gib, Content: "keep", Every: 100},
		Log:      Log{Level: "debug", Format: "text"},
	}
	for name, want := range map[string]Config{
		"empty": Default(), "smallest": smallest, "models": models, "all": all,
	} {
		got, err := Load("testdata/valid-" + name + ".yaml")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLoad_Unreadable(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("#\n", int(maxFile))), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"testdata/no-such.yaml": "read the configuration: open testdata/no-such.yaml: no such file or directory",
		"testdata":              "read the configuration: read testdata: is a directory",
		large:                   "read the configuration: " + large + " is larger than 4MiB",
	} {
		if _, err := Load(file); err == nil || err.Error() != want {
			t.Errorf("Load(%s): %v\nwant %s", file, err, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	f := func(c Config, limit string, want ...string) {
		t.Helper()
		got := c.Warnings(func(string) string { return limit })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %q (-want +got):\n%s", limit, diff)
		}
	}
	c := Default()
	f(c, "")
	f(c, "80")
	f(c, "-1")
	f(c, "79", "trace.chunk_events.max: is 64, but 63 take effect: a span has 79 events at most (OTEL_SPAN_EVENT_COUNT_LIMIT) and 16 are kept free for milestones")
	f(c, "8", "trace.chunk_events.max: is 64, but 0 take effect: a span has 8 events at most (OTEL_SPAN_EVENT_COUNT_LIMIT) and 16 are kept free for milestones")
	c.Trace.ChunkEvents.Max = 113
	f(c, "", "trace.chunk_events.max: is 113, but 112 take effect: a span has 128 events at most (the SDK's default) and 16 are kept free for milestones")

	c = Default()
	c.Record.Content = "keep"
	f(c, "")
	c.Record.Dir = "/tmp/d"
	f(c, "", `record.content: is keep: prompts and completions are written to files in "/tmp/d"`)

	c = Default()
	c.Pools = []Pool{{Name: "a", Policy: "least-load"}, {Name: "b", Policy: "least-load"}}
	f(c, "", `pools: none is named "default", and models is empty: a filter that routes has no pool for any request, and answers 404; say under models which pool serves which, or name one "default"`)
	c.Models = []Model{{Name: "llama", Targets: []Target{{Pool: "a"}}}}
	f(c, "")
	c.Models = nil
	c.Pools[1].Name = "default"
	f(c, "")

	c = Default()
	c.Pools = []Pool{{Name: "default", Policy: "lora", Scrape: Scrape{Enabled: true}}, {Policy: "lora"}}
	f(c, "", "pools[1].policy: is lora, but which adapters a server runs is in its metrics, which pools[1].scrape.enabled leaves unread")

	c = Default()
	c.Models = []Model{{Name: "llama", Targets: []Target{{Pool: "a", Model: "llama"}, {Pool: "b", Model: "v2"}}}}
	f(c, "", `models[0].targets[1]: "llama" is rewritten to "v2": while Envoy runs without Inferspan (failure_mode_allow) the servers of pool "b" get the name as asked and answer 404; start them with --served-model-name "v2" "llama"`)

	// A prefix without a rewritten name is served as it was asked, whoever routes.
	c.Models = []Model{{Name: "llama", Aliases: []string{"gpt-4", "x"}, Prefixes: []string{"llama-"}, Targets: []Target{{Pool: "a"}}}}
	f(c, "", `models[0].targets[0]: "gpt-4", "x" are rewritten to "llama": while Envoy runs without Inferspan (failure_mode_allow) the servers of pool "a" get the name as asked and answer 404; start them with --served-model-name "llama" "gpt-4" "x"`)

	c.Models = []Model{{Name: "llama", Prefixes: []string{"llama-", "org/"}, Targets: []Target{{Pool: "a", Model: "llama"}}}}
	f(c, "", `models[0].targets[0]: names that begin with "llama-" or "org/" are rewritten to "llama": while Envoy runs without Inferspan (failure_mode_allow) the servers of pool "a" get the name as asked and answer 404; start them with --served-model-name "llama" and each name that clients use, or leave out targets[].model`)

	c.Models = []Model{
		{Name: "llama", Targets: []Target{{Pool: "a", Model: "v2"}, {Pool: "b"}}},
		{Name: "old", Targets: []Target{{Pool: "a", Model: "llama"}}},
		{Name: "mixed", Targets: []Target{{Pool: "b", Model: "v2"}, {Pool: "b"}}}, // served there by both names
	}
	f(c, "", `models[0]: while Envoy runs without Inferspan (failure_mode_allow) who asks for "llama" may get another model, of models[1]: the servers of pool "a" know that one by this name; give it another there`,
		`models[1].targets[0]: "old" is rewritten to "llama": while Envoy runs without Inferspan (failure_mode_allow) the servers of pool "a" get the name as asked and answer 404; start them with --served-model-name "llama" "old"`)

	// Envoy alone knows no pools.
	c.Models = []Model{
		{Name: "llama", Aliases: []string{"gpt"}, Targets: []Target{{Pool: "a"}}},
		{Name: "other", Targets: []Target{{Pool: "b", Model: "gpt"}}},
	}
	f(c, "", `models[0]: while Envoy runs without Inferspan (failure_mode_allow) who asks for "gpt" may get another model, of models[1]: the servers of pool "b" know that one by this name; give it another there`,
		`models[0].targets[0]: "gpt" is rewritten to "llama": while Envoy runs without Inferspan (failure_mode_allow) the servers of pool "a" get the name as asked and answer 404; start them with --served-model-name "llama" "gpt"`,
		`models[1].targets[0]: "other" is rewritten to "gpt": while Envoy runs without Inferspan (failure_mode_allow) the servers of pool "b" get the name as asked and answer 404; start them with --served-model-name "gpt" "other"`)
}

func TestWarnings_Shed(t *testing.T) {
	f := func(s Shed, scrape bool, trusted string, want ...string) {
		t.Helper()
		c := Default()
		c.Pools = []Pool{{Name: "default", Shed: s, Scrape: Scrape{Enabled: scrape}}}
		c.Trusted.Header = trusted
		if diff := cmp.Diff(want, c.Warnings(func(string) string { return "" })); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", s, diff)
		}
	}
	const nobody = "pools[0].shed: its limits concern requests of a priority below 0, and nobody may say one: set trusted"
	const unknown = "pools[0].shed: queue and kv_usage are never known, and so not reached, while scrape.enabled of the pool is false"
	f(Shed{}, false, "")
	f(Shed{InFlight: 1, Queue: 2, KVUsage: 0.5, Hard: Limits{Queue: 3}}, true, "x")
	f(Shed{Hard: Limits{InFlight: 1}}, false, "")
	f(Shed{InFlight: 1}, false, "", nobody)
	f(Shed{Queue: 1}, false, "", nobody, unknown)
	f(Shed{Hard: Limits{KVUsage: 0.5}}, false, "x", unknown)
}

func TestSizeString(t *testing.T) {
	for s, want := range map[Size]string{0: "0KiB", kib: "1KiB", 1536 * kib: "1536KiB", 64 * mib: "64MiB", gib: "1GiB"} {
		if got := s.String(); got != want {
			t.Errorf("String of %d = %s, want %s", int64(s), got, want)
		}
	}
}

// Whatever the file holds, reading it ends, and each fault is one clean line.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Parse("f", data)
		if err == nil {
			return
		}
		var e *Error
		if !errors.As(err, &e) || len(e.Faults) == 0 {
			t.Fatalf("Parse: %v, want a *Error with faults", err)
		}
		for _, line := range e.Lines() {
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) || !strings.Contains(line, "; allowed: ") {
				t.Errorf("not one clean line: %q", line)
			}
		}
	})
}
