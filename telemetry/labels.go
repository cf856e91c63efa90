package telemetry

import (
	"maps"
	"net/http"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The bounds of labels. A series set costs some 10 KiB over all metrics.
const (
	maxModels        = 200 // that no configuration names
	maxPools         = 32  // the same: they come by hand-overs of other replicas, or of who plays one
	maxErrorTypes    = 100
	maxFinishReasons = 50
	maxLabelSets     = 1024
	maxVariants      = 512 // of one label set: outcome and status, source, stage ...

	// cardinalityLimit is the SDK's backstop; the labels are bounded before.
	cardinalityLimit = maxLabelSets * 16
)

// options are a prepared set of attributes, in the forms that instruments take:
// building a set for each measurement costs more than the measurement.
type options struct {
	set    attribute.Set
	record []metric.RecordOption
	add    []metric.AddOption
}

func newOptions(kvs ...attribute.KeyValue) *options {
	// NewSet sorts what it gets in place.
	set := attribute.NewSet(slices.Clone(kvs)...)
	o := metric.WithAttributeSet(set)
	return &options{set: set, record: []metric.RecordOption{o}, add: []metric.AddOption{o}}
}

// labelSet is what every metric of an exchange carries, prepared.
type labelSet struct {
	attributes     []attribute.KeyValue
	plain          *options
	exact, assumed *options
	observe        []metric.ObserveOption
	tokens         streamTokens

	mu       sync.Mutex
	variants map[variant]*options // Invariant: at most maxVariants
}

// variant is what a metric carries beside the common labels. The zero value of
// a field is an absent attribute.
type variant struct {
	outcome, errorType, reason, source, stage string
	routeReason, finish, modality, tokenType  string
	status                                    int
	stream                                    streaming
	slo                                       string
	met                                       bool   // with slo
	headers                                   string // as headerAttributes.label joins them
}

type streaming uint8

const (
	streamUnsaid streaming = iota
	streamNo
	streamYes
)

func newLabelSet(operation, model, pool string) *labelSet {
	kvs := startAttributes(operation, model)
	if pool != "" {
		kvs = append(kvs, keyPool.String(pool))
	}
	kvs = slices.Clip(kvs)
	return &labelSet{
		attributes: kvs,
		plain:      newOptions(kvs...),
		exact:      newOptions(append(kvs, keyTokenCount.String(countExact))...),
		assumed:    newOptions(append(kvs, keyTokenCount.String(countAssumed))...),
		observe:    []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(slices.Clone(kvs)...))},
		variants:   make(map[variant]*options),
	}
}

// with returns the set with v's attributes added.
func (s *labelSet) with(v variant) *options {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.variants[v]; ok {
		return o
	}
	kvs := slices.Clip(s.attributes)
	for _, a := range []struct {
		key   attribute.Key
		value string
	}{
		{keyOutcome, v.outcome}, {keyErrorType, v.errorType}, {keyReason, v.reason},
		{keyUsageSource, v.source}, {keyStage, v.stage},
		{keyRouteReason, v.routeReason}, {keyFinishReason, v.finish},
		{keyTokenModality, v.modality}, {keyTokenType, v.tokenType},
	} {
		if a.value != "" {
			kvs = append(kvs, a.key.String(a.value))
		}
	}
	if v.status != 0 {
		kvs = append(kvs, keyHTTPStatus.Int(v.status))
	}
	if v.stream != streamUnsaid {
		kvs = append(kvs, keyStream.Bool(v.stream == streamYes))
	}
	if v.slo != "" {
		kvs = append(kvs, keySLOName.String(v.slo), keySLOMet.Bool(v.met))
	}
	kvs = appendLabel(kvs, v.headers)
	o := newOptions(kvs...)
	if len(s.variants) < maxVariants {
		s.variants[v] = o
	}
	return o
}

// labels prepares and keeps label sets. It is safe for concurrent use.
type labels struct {
	models   *boundedNames
	pools    *boundedNames
	errors   *boundedNames
	finishes *boundedNames

	mu   sync.RWMutex
	sets map[labelKey]*labelSet // Invariant: at most maxLabelSets, and one of each operation
}

type labelKey struct{ operation, model, pool string }

func newLabels(models, pools []string) *labels {
	return &labels{
		models:   newBoundedNames(maxModels, models...),
		pools:    newBoundedNames(maxPools, pools...),
		errors:   newBoundedNames(maxErrorTypes),
		finishes: newBoundedNames(maxFinishReasons),
		sets:     make(map[labelKey]*labelSet),
	}
}

// get returns the label set; proven tells that a server accepted the model.
// folded says why the model or the pool is not named, "" where both are.
func (l *labels) get(operation, model, pool string, proven bool) (set *labelSet, folded string) {
	label, folded := l.models.get(model, proven)
	pool, full := l.pools.get(pool, true)
	if folded == "" {
		folded = full
	}
	key := labelKey{operation, label, pool}
	l.mu.RLock()
	set, ok := l.sets[key]
	l.mu.RUnlock()
	if ok {
		return set, folded
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if set, ok := l.sets[key]; ok {
		return set, folded
	}
	if len(l.sets) >= maxLabelSets {
		key, folded = labelKey{operation: operation, model: otherValue}, foldFull
		if set, ok := l.sets[key]; ok {
			return set, folded
		}
	}
	set = newLabelSet(key.operation, key.model, key.pool)
	l.sets[key] = set
	return set, folded
}

// all returns the label sets that were ever used.
func (l *labels) all() []*labelSet {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Collect(maps.Values(l.sets))
}

func success(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices
}
