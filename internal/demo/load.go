package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/journal"
	"github.com/inferspan/inferspan/processor/meter"
)

const (
	// maxRate is the highest rate of requests, a second.
	maxRate = 100
	// maxInFlight is how many requests may be under way at once.
	maxInFlight = 16
	// hangUpEvery is one in how many streams the client leaves early.
	hangUpEvery = 8
	// grace is how long after the demo's duration the client hangs up on all.
	grace = 2 * time.Second
	// recordTime is how long after its end a request's record is waited for.
	recordTime = 5 * time.Second
)

// load sends requests for the demo's duration or until ctx ends, and prints
// each when Inferspan has its record.
func load(ctx context.Context, s *stack, o options, out io.Writer) error {
	client := testkit.NewClient(s.listener, false)
	defer client.Close()
	sending, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	over := sending.Done()
	// Where load fails, its requests end too: results takes them all.
	asking, stop := context.WithCancel(ctx)
	defer stop()
	calling, hangUp := context.WithTimeout(asking, o.duration+grace)
	defer hangUp()

	results := make(chan result, maxInFlight)
	inFlight := 0
	tick := time.NewTicker(time.Duration(float64(time.Second) / o.rate))
	defer tick.Stop()
	r := newReport(out, s.binary, s.adminURL())
	take := func(got result) error {
		inFlight--
		// A request without a record is no news when the user leaves.
		if got.record != nil || ctx.Err() == nil {
			if err := r.add(got); err != nil {
				return err
			}
		}
		return s.failed()
	}
	for sending.Err() == nil || inFlight > 0 {
		next := tick.C
		if sending.Err() != nil || inFlight == maxInFlight {
			next = nil
		}
		select {
		case <-next:
			inFlight++
			go func() { results <- ask(asking, calling, client, pick(s.plays), s.adminURL()) }()
		case got := <-results:
			if err := take(got); err != nil {
				return err
			}
		case <-over:
			over = nil // heard once
			if inFlight > 0 && ctx.Err() == nil {
				if err := say(out, "the time is over; %d requests have up to %s to end\n", inFlight, grace); err != nil {
					return err
				}
			}
		}
	}
	return r.summary()
}

// result is what came of one request: Inferspan's record of it, or why there
// is none.
type result struct {
	record *meter.Record
	err    error
}

// ask makes one request, hangs up with calling, and fetches its record.
func ask(ctx, calling context.Context, c *testkit.Client, p *play, adminURL string) result {
	id := requestID()
	call := p.call
	call.Header = append(slices.Clip(call.Header),
		testkit.Header{Name: "x-request-id", Value: id},
		testkit.Header{Name: testkit.ScriptHeader, Value: p.name})
	if p.stream && mathrand.IntN(hangUpEvery) == 0 {
		call.HangUpAfter = 1 + mathrand.IntN(len(p.script.Body()))
	}
	// A broken answer is told by its record too.
	if _, err := c.Do(calling, call); err != nil && calling.Err() == nil {
		return result{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	var got result
	got.err = testkit.Poll(ctx, func(ctx context.Context) error {
		body, err := testkit.Get(ctx, adminURL+journal.Path(id))
		if err != nil {
			return err
		}
		newest, _, _ := bytes.Cut(body, []byte("\n"))
		got.record, err = journal.Decode(newest)
		return err
	})
	if got.err != nil {
		got.err = fmt.Errorf("find the record of the request %s: %w", id, got.err)
	}
	return got
}

// requestID is a random UUID.
func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// pick chooses one of all by their shares.
func pick(all []play) *play {
	sum := 0
	for _, p := range all {
		sum += p.share
	}
	n := mathrand.IntN(sum)
	i := 0
	for n -= all[0].share; n >= 0; n -= all[i].share {
		i++
	}
	return &all[i]
}
