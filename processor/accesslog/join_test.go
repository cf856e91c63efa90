package accesslog

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit/bubble"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// bench is a Join in scripted time, and what came of it.
type bench struct {
	*Join
	t     *testing.T
	begun time.Time

	mu   sync.Mutex
	said []string
}

func newBench(t *testing.T, c Config) *bench {
	t.Helper()
	b := &bench{t: t, begun: time.Now()}
	c.Unmatched = func(reason string) { b.say("unmatched " + reason) }
	b.Join = New(c)
	return b
}

func (b *bench) say(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, fmt.Sprintf("%v %s", time.Since(b.begun), what))
}

// live and settle say by the bytes of the entry which one they got.
func (b *bench) live(name string) func(*Account) {
	return func(a *Account) { b.say(fmt.Sprintf("%s live %d", name, a.Sent)) }
}

func (b *bench) settle(name string) func(*Account) {
	return func(a *Account) {
		if a == nil {
			b.say(name + " nothing")
			return
		}
		b.say(fmt.Sprintf("%s settled %d", name, a.Sent))
	}
}

// want fails unless exactly this was said since the last want.
func (b *bench) want(said ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(said, b.said); diff != "" {
		b.t.Errorf("said (-want +got):\n%s", diff)
	}
	b.said = nil
}

var (
	at    = time.Date(2026, 11, 30, 10, 10, 22, 81_548_000, time.UTC)
	spanA = [8]byte{0xaa}
)

const spanAText = "aa00000000000000"

// entry is of request id and start, which Envoy has to the nanosecond.
func entry(id string, bytes uint64) *wire.LogEntry {
	return &wire.LogEntry{RequestID: id, Start: at.Add(789 * time.Nanosecond), Bytes: bytes}
}

// scripted runs f in scripted time, and wants nothing to be left at its end.
func scripted(t *testing.T, c Config, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, c)
		f(b)
		b.Close()
		if n := len(b.waiting) + len(b.kept) + len(b.keptBy) + len(b.keptSpan); n != 0 {
			t.Errorf("%d wait after the close", n)
		}
	})
}

func TestEntrySettlesWhatWaits(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		x := b.Open("r", at, b.live("x"))
		x.Wait(b.settle("x"))
		bubble.Pass(100 * time.Millisecond)
		b.want()
		b.Add(entry("r", 7))
		b.want("100ms x settled 7")
		b.Add(entry("r", 8)) // a second one tells of another exchange
		bubble.Pass(time.Minute)
		b.want("10.1s unmatched no_exchange")
	})
}

func TestWaitIsBounded(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		b.Open("r", at, b.live("x")).Wait(b.settle("x"))
		bubble.Pass(2 * time.Second)
		b.want("2s x nothing")
		b.Add(entry("r", 7))
		b.want("2s unmatched late")
		bubble.Pass(time.Minute)
		b.want()
	})
}

func TestEntryOfALiveExchange(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		x := b.Open("r", at, b.live("x"))
		b.Add(entry("r", 7))
		b.want("0s x live 7")
		x.Wait(b.settle("x"))
		b.want("0s x settled 7")

		y := b.Open("s", at, b.live("y"))
		b.Add(entry("s", 8))
		if a := y.End(); a == nil || a.Sent != 8 {
			b.t.Errorf("the end gives %+v", a)
		}
		b.want("0s y live 8")
	})
}

// An entry may come before we know of its exchange, and after we need it.
func TestEntryBeforeAndAfter(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		b.Add(entry("r", 7))
		bubble.Pass(9 * time.Second)
		x := b.Open("r", at, b.live("x"))
		b.want("9s x live 7")
		if x.End() == nil {
			b.t.Error("the end has no entry")
		}
		y := b.Open("s", at, b.live("y"))
		if a := y.End(); a != nil {
			b.t.Errorf("the end gives %+v", a)
		}
		b.Add(entry("s", 8))
		bubble.Pass(time.Minute)
		b.want()
	})
}

// The span id decides where there is one: the request id is the client's.
func TestSpanID(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		x := b.Open("r", at, b.live("x"))
		b.Open("r", at, b.live("y"))
		x.Identify(spanA)
		x.Identify([8]byte{0xbb}) // it keeps the first
		e := entry("r", 7)
		e.SpanID = spanAText
		b.Add(e)
		b.want("0s x live 7")
		for _, unknown := range []string{"bb00000000000000", "aa", "zz00000000000000", "0000000000000000"} {
			e = entry(unknown, 8)
			e.SpanID = unknown
			b.Add(e)
		}
		b.Add(entry("r", 9)) // y alone has the request id now
		b.want("0s y live 9")
		bubble.Pass(10 * time.Second)
		b.want("10s unmatched no_exchange", "10s unmatched no_exchange", "10s unmatched no_exchange", "10s unmatched no_exchange")
		b.Open("", time.Time{}, nil).Identify([8]byte{})
	})
}

// Of a span id that is broken nothing counts, not even its beginning.
func TestBrokenSpanID(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		e := entry("r", 7)
		e.SpanID = spanAText[:14] + "zz"
		b.Add(e)
		b.Open("s", at, b.live("x")).Identify(spanA)
		b.want()
		b.Open("r", at, b.live("y"))
		b.want("0s y live 7")
	})
}

// An observed exchange may get its span id after its entry came, and may never
// get one: its request was decided on elsewhere.
func TestSpanIDOfAnother(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		spanned := func(id string, bytes uint64) *wire.LogEntry {
			e := entry(id, bytes)
			e.SpanID = spanAText
			return e
		}
		b.Add(&wire.LogEntry{SpanID: spanAText, Bytes: 7})
		x := b.Open("r", at, b.live("x"))
		b.want()
		x.Identify(spanA)
		b.want("0s x live 7")

		b.Open("s", at, b.live("never identified"))
		b.Add(spanned("s", 8))
		b.want("0s never identified live 8")

		y := b.Open("t", at, b.live("identified otherwise"))
		y.Identify([8]byte{0xbb})
		b.Add(spanned("t", 9))
		bubble.Pass(10 * time.Second)
		b.want("10s unmatched no_exchange")

		// Of two entries with one key, the span id finds each.
		b.Add(spanned("u", 10))
		other := entry("u", 11)
		other.SpanID = "cc00000000000000"
		b.Add(other)
		z := b.Open("u", at, b.live("z"))
		b.want()
		z.Identify([8]byte{0xcc})
		b.want("10s z live 11")
		again := b.Open("u", at, b.live("again"))
		again.Identify(spanA)
		b.want("10s again live 10")
	})
}

// The deciding stream of a split deployment leaves its exchange to the observing
// one: entries that could be either's are that one's.
func TestLeave(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		deciding := b.Open("r", at, b.live("deciding"))
		deciding.Leave()
		b.Open("r", at, b.live("observing"))
		b.Add(entry("r", 7))
		b.want("0s observing live 7")
		deciding.Leave()
		deciding.Identify(spanA)
		deciding.Wait(b.settle("deciding"))
		b.want("0s deciding nothing")
		var none *Exchange
		none.Leave()
	})
}

// What fits several exchanges settles none of them.
func TestAmbiguous(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		for range 2 {
			b.Open("r", at, b.live("x")).Wait(b.settle("x"))
		}
		b.Add(entry("r", 7))
		b.want("0s unmatched ambiguous")
		bubble.Pass(2 * time.Second)
		b.want("2s x nothing", "2s x nothing")

		// Both entries come first.
		b.Add(entry("s", 7))
		b.Add(entry("s", 8))
		y := b.Open("s", at, b.live("y"))
		if y.End() != nil {
			b.t.Error("it got one of two entries")
		}
		b.want("2s unmatched ambiguous", "2s unmatched ambiguous")

		// The same id at another microsecond is another exchange.
		z := b.Open("z", at, b.live("z"))
		b.Open("z", at.Add(time.Microsecond), b.live("another"))
		b.Add(entry("z", 9))
		b.want("2s z live 9")
		z.End()
	})
}

func TestNothingToJoinBy(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		b.Open("", at, b.live("x")).Wait(b.settle("x"))
		b.Open("r", time.Time{}, b.live("y")).Wait(b.settle("y"))
		var none *Exchange
		none.Identify(spanA)
		if none.End() != nil {
			b.t.Error("an entry of nothing")
		}
		none.Wait(b.settle("z"))
		b.want("0s x nothing", "0s y nothing", "0s z nothing")
		b.Add(&wire.LogEntry{RequestID: "r"})
		bubble.Pass(10 * time.Second)
		b.want("10s unmatched no_exchange")
	})
}

func TestBounds(t *testing.T) {
	scripted(t, Config{MaxWaiting: 1, MaxKept: 1, MaxOver: 2}, func(b *bench) {
		b.Open("1", at, b.live("1")).Wait(b.settle("1"))
		b.Open("2", at, b.live("2")).Wait(b.settle("2"))
		b.want("0s 2 nothing")
		b.Add(entry("2", 7)) // it could have told
		b.want("0s unmatched late")
		b.Add(entry("a", 7))
		b.Add(entry("b", 8))
		b.want("0s unmatched full")
		bubble.Pass(10 * time.Second)
		b.want("2s 1 nothing", "10s unmatched no_exchange")
		for i := range 100 {
			b.Open(fmt.Sprint("over ", i), at, nil).End()
			if i%3 == 0 {
				b.Add(entry(fmt.Sprint("over ", i), 9))
			}
		}
		if n := len(b.requests); n > 2 || len(b.over) > 2 {
			b.t.Errorf("%d are remembered in %d places, want 2", n, len(b.over))
		}
		b.Add(entry("over 99", 7)) // its entry has come
		b.Add(entry("over 98", 7))
		bubble.Pass(10 * time.Second)
		b.want("20s unmatched no_exchange")
	})
}

// Unseen is what has neither an exchange here nor a span id of ours, and a name by
// which it would have been found.
func TestUnseen(t *testing.T) {
	var unseen atomic.Int64 // timers count, too
	scripted(t, Config{Unseen: func() { unseen.Add(1) }}, func(b *bench) {
		want := func(n int64) {
			b.t.Helper()
			if got := unseen.Load(); got != n {
				b.t.Errorf("%d unseen, want %d", got, n)
			}
		}
		b.Open("seen", at, b.live("x")).End()
		b.Add(entry("seen", 7))
		decided := entry("decided elsewhere", 7)
		decided.SpanID = spanAText
		b.Add(decided)
		b.Add(&wire.LogEntry{RequestID: "without a start"})
		b.Add(entry("passed by", 7))
		b.Add(entry("late", 7))
		bubble.Pass(9 * time.Second)
		b.Open("late", at, b.live("y"))
		want(0)
		bubble.Pass(time.Second)
		want(1)
		b.Add(entry("at the end", 7))
		b.Close()
		want(2)
		b.want("9s y live 7", "10s unmatched no_exchange", "10s unmatched no_exchange", "10s unmatched no_exchange", "10s unmatched no_exchange")
	})
}

// At the end nothing waits any more.
func TestClose(t *testing.T) {
	scripted(t, Config{}, func(b *bench) {
		x := b.Open("r", at, b.live("x"))
		x.Wait(b.settle("x"))
		b.Add(entry("s", 7))
		b.Close()
		b.want("0s unmatched no_exchange", "0s x nothing")
		b.Open("t", at, b.live("y")).Wait(b.settle("y"))
		b.Add(entry("u", 7))
		b.want("0s y nothing", "0s unmatched full")
		bubble.Pass(time.Minute)
		b.want()
	})
}

// An exchange is settled once, whatever comes at the same moment.
func TestConcurrentSafe(t *testing.T) {
	b := newBench(t, Config{Wait: time.Millisecond})
	var wg sync.WaitGroup
	for i := range 200 {
		id := fmt.Sprint(i)
		x := b.Open(id, at, nil)
		wg.Go(func() { b.Add(entry(id, 7)) })
		wg.Go(func() {
			x.Identify([8]byte{byte(i), 1})
			done := make(chan struct{})
			x.Wait(func(*Account) {
				b.say(id)
				close(done)
			})
			<-done
		})
	}
	wg.Wait()
	b.Close()
	times := map[string]int{}
	for _, s := range b.said {
		if _, what, _ := strings.Cut(s, " "); !strings.HasPrefix(what, "unmatched") {
			times[what]++
		}
	}
	for id, n := range times {
		if n != 1 {
			t.Errorf("%s was settled %d times", id, n)
		}
	}
	if len(times) != 200 {
		t.Errorf("%d were settled, want 200", len(times))
	}
}

func TestCause(t *testing.T) {
	for _, c := range []struct {
		flags    wire.Flags
		complete bool
		sent     int64
		want     meter.Cause
	}{
		{wire.FlagClient, false, 10, meter.CauseClient},
		{wire.FlagClient, false, 99, meter.CauseClient},
		{wire.FlagUpstream, false, 10, meter.CauseUpstream},
		{wire.FlagUpstream | wire.FlagClient, false, 10, meter.CauseUpstream},
		{wire.FlagTimeout, false, 10, meter.CauseTimeout},
		{wire.FlagTimeout | wire.FlagUpstream | wire.FlagOther, false, 10, meter.CauseTimeout},
		{wire.FlagOther, false, 99, meter.CauseAborted},
		{0, true, 11, meter.CauseLost},
		{0, false, 11, meter.CauseLost},
		{0, true, 10, meter.CauseEnd},
		{0, true, 9, meter.CauseAborted}, // it was edited: what was sent can't be compared
		{0, false, 10, meter.CauseAborted},
	} {
		a := Account{flags: c.flags, complete: c.complete, Sent: c.sent}
		if got := a.Cause(10); got != c.want {
			t.Errorf("flags %b, complete %t, %d of 10 bytes: %v, want %v", c.flags, c.complete, c.sent, got, c.want)
		}
		if got, want := a.Blames(), c.flags&^wire.FlagOther != 0; got != want {
			t.Errorf("flags %b: blames %t", c.flags, got)
		}
	}
	if a := account(&wire.LogEntry{Bytes: 1 << 63}); a.Sent != 1<<62 {
		t.Errorf("%d bytes", a.Sent)
	}
}
