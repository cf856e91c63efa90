package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

var origin = time.Date(2026, 11, 30, 21, 25, 29, 0, time.UTC)

// record is the n-th record, with ids of its own where they are empty.
func record(n int, requestID string) *meter.Record {
	r := &meter.Record{
		RequestID:  requestID,
		Start:      origin.Add(time.Duration(n) * time.Second),
		ResponseID: meter.Some(fmt.Sprintf("chatcmpl-%d", n)),
		Outcome:    meter.OK,
		End:        time.Duration(n) * time.Millisecond,
	}
	if requestID == "" {
		r.RequestID = fmt.Sprintf("req-%d", n)
	}
	r.Trace.TraceID[0], r.Trace.TraceID[14], r.Trace.TraceID[15] = 0xab, byte(n>>8), byte(n)
	return r
}

// found are the ends in milliseconds, which number the records.
func found(t testing.TB, j *Journal, id string) string {
	t.Helper()
	var out []string
	for _, line := range j.Lookup(id) {
		r, err := Decode(line)
		if err != nil {
			t.Fatalf("Decode: %v", err)
		}
		out = append(out, fmt.Sprint(r.End.Milliseconds()))
	}
	return strings.Join(out, " ")
}

func TestLookupByAnyID(t *testing.T) {
	j := New(1 << 20)
	for n := range 5 {
		j.Add(record(n, ""))
	}
	f := func(id, want string) {
		t.Helper()
		if got := found(t, j, id); got != want {
			t.Errorf("Lookup(%q): got %q, want %q", id, got, want)
		}
	}
	f("req-3", "3")
	f("chatcmpl-0", "0")
	f("ab000000000000000000000000000004", "4")
	f("AB000000000000000000000000000004", "4")
	f("REQ-3", "")
	f("req-5", "")
	f("", "")
	f("00000000000000000000000000000000", "")
}

func TestLookupFindsAllNewestFirst(t *testing.T) {
	j := New(1 << 20)
	for n := range 6 {
		id := "shared"
		if n%2 == 1 {
			id = ""
		}
		j.Add(record(n, id))
	}
	if got := found(t, j, "shared"); got != "4 2 0" {
		t.Errorf("got %q, want 4 2 0", got)
	}
	// One id of two kinds is one match.
	r := record(6, "chatcmpl-6")
	j.Add(r)
	if got := found(t, j, "chatcmpl-6"); got != "6" {
		t.Errorf("got %q, want 6", got)
	}
}

func TestAddWithoutIDs(t *testing.T) {
	j := New(1 << 20)
	j.Add(&meter.Record{})
	j.Add(&meter.Record{RequestID: strings.Repeat("x", MaxID+1)})
	if n, _ := j.Held(); n != 2 || len(j.byID) != 0 {
		t.Errorf("got %d records and %d ids, want 2 and none", n, len(j.byID))
	}
}

func TestOldestGiveWay(t *testing.T) {
	one := New(1 << 20)
	one.Add(record(100, ""))
	size := one.bytes

	j := New(10 * size)
	for n := 100; n < 200; n++ {
		j.Add(record(n, ""))
	}
	count, since := j.Held()
	if want := origin.Add(190 * time.Second); count != 10 || !since.Equal(want) {
		t.Errorf("got %d records since %v, want 10 since %v", count, since, want)
	}
	if got := found(t, j, "req-189") + "," + found(t, j, "req-190") + "," + found(t, j, "req-199"); got != ",190,199" {
		t.Errorf("got %q, want ,190,199", got)
	}

	small := New(size - 1)
	small.Add(record(100, ""))
	off := New(0)
	off.Add(record(100, ""))
	for _, j := range []*Journal{small, off} {
		if n, _ := j.Held(); n != 0 || j.bytes != 0 {
			t.Errorf("got %d records of %d bytes where none fits", n, j.bytes)
		}
	}
}

// TestJournalKeepsItsInvariants runs random ids against a plain list.
func TestJournalKeepsItsInvariants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	j := New(20_000)
	var all []string
	for n := range 3000 {
		id := fmt.Sprintf("r%d", rnd.IntN(12))
		j.Add(record(n, id))
		all = append(all, id)
		if j.bytes > j.maxBytes || j.count == 0 {
			t.Fatalf("after %d: %d bytes in %d records, want at most %d", n, j.bytes, j.count, j.maxBytes)
		}
		id = fmt.Sprintf("r%d", rnd.IntN(12))
		var want []string
		for i := n; i > n-j.count; i-- {
			if all[i] == id {
				want = append(want, fmt.Sprint(i))
			}
		}
		if got := found(t, j, id); got != strings.Join(want, " ") {
			t.Fatalf("after %d: Lookup(%q): got %q, want %q", n, id, got, want)
		}
	}
	ids := 0
	for e := j.oldest; e != nil; e = e.newer {
		ids += len(e.ids)
	}
	if len(j.byID) > ids {
		t.Errorf("%d ids are indexed, the records have %d", len(j.byID), ids)
	}
	for j.count > 0 {
		j.evict()
	}
	if j.bytes != 0 || len(j.byID) != 0 || j.newest != nil || j.oldest != nil {
		t.Errorf("an emptied journal holds %d bytes, %d ids", j.bytes, len(j.byID))
	}
}

// What the journal says that it takes is what the heap grew by, nearly.
func TestBytesAreCountedHonestly(t *testing.T) {
	const limit = 4 << 20
	records := make([]*meter.Record, 1000)
	heap := func() int {
		runtime.GC()
		runtime.GC() // the first only empties the pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	j := New(limit)
	for n := 0; n < 50_000; n += len(records) {
		for i := range records {
			j.Add(record(n+i, fmt.Sprintf("0b9d5a0e-%d", n+i)))
		}
	}
	grown := heap() - before
	if grown > limit*11/10 {
		t.Errorf("the heap grew by %d bytes, counted were %d of %d", grown, j.bytes, limit)
	}
	if j.bytes < limit*9/10 {
		t.Errorf("%d bytes are used of %d", j.bytes, limit)
	}
	runtime.KeepAlive(j)
}

func TestJournalConcurrentSafe(t *testing.T) {
	j := New(50_000)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for n := range 500 {
				j.Add(record(w*500+n, "shared"))
			}
		})
		wg.Go(func() {
			for range 50 {
				for _, line := range j.Lookup("shared") {
					if !bytes.HasPrefix(line, []byte("{")) {
						t.Errorf("got the line %q", line)
						return
					}
				}
				j.Held()
			}
		})
	}
	wg.Wait()
}

func BenchmarkAdd(b *testing.B) {
	j := New(16 << 20)
	r := record(1, "")
	b.ReportAllocs()
	for b.Loop() {
		j.Add(r)
	}
}

// TestResize: with less room the oldest go at once, with more none does.
func TestResize(t *testing.T) {
	j := New(1 << 20)
	for n := range 10 {
		j.Add(record(n, "same"))
	}
	each := j.bytes / 10
	j.Resize(3*each + each/2)
	if got, want := found(t, j, "same"), "9 8 7"; got != want || j.bytes > j.maxBytes {
		t.Errorf("%q is left in %d bytes, want %q", got, j.bytes, want)
	}
	j.Resize(1 << 20)
	j.Add(record(10, "same"))
	if got, want := found(t, j, "same"), "10 9 8 7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	j.Resize(0)
	j.Add(record(11, "same"))
	if got := found(t, j, "same"); got != "" || j.bytes != 0 || j.count != 0 {
		t.Errorf("%q, %d bytes", got, j.bytes)
	}
}
