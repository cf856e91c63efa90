package recording

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

const (
	// maxTake is how many bytes one exchange may take in memory.
	maxTake = 4 << 20
	// maxHeld is how many those take together that pass or wait to be written.
	maxHeld = 64 << 20
	// maxWaiting is how many may wait to be written.
	maxWaiting = 64
)

// The events that a Recorder counts: exchanges that were to be recorded and are
// not.
const (
	CountTooLarge = "record_too_large" // it is too much for one
	CountMemory   = "record_memory"    // too much is in memory already
	CountQueue    = "record_queue"     // too many wait to be written
	CountCoding   = "record_coding"    // a content coding could not be taken off
	CountFailed   = "record_failed"    // it could not be written; the log says why
)

// RecorderConfig is what a Recorder works with; each field is needed.
type RecorderConfig struct {
	// Dir is where the files go. It is made where it is not there, and is for one
	// Recorder alone.
	Dir string
	// MaxBytes is how much its recordings take together: the oldest give way.
	MaxBytes int64
	// Every is of how many exchanges one is recorded.
	Every int
	// KeepContent leaves the content as it passed.
	KeepContent bool
	// Count adds one to a counter; it is called by many goroutines.
	Count  func(event string)
	Logger *slog.Logger
}

// Recorder writes exchanges as recordings, a file each. Nobody waits for it:
// what it can't take is not recorded, and counted. It is safe for concurrent use.
type Recorder struct {
	config RecorderConfig
	shelf  *shelf

	begun atomic.Int64 // exchanges
	held  atomic.Int64 // bytes of takes. Invariant: 0 <= held, mostly <= maxHeld

	waiting chan *Take
	stop    chan struct{} // closed by Close: write what waits, and no more
	stopped chan struct{}
	failing bool // the last file could not be written
}

// NewRecorder returns a Recorder that writes until Close.
func NewRecorder(c RecorderConfig) (*Recorder, error) {
	s, err := openShelf(c.Dir, c.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("record in %s: %w", c.Dir, err)
	}
	r := &Recorder{
		config: c, shelf: s,
		waiting: make(chan *Take, maxWaiting), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go r.run()
	return r, nil
}

// Begin returns what takes an exchange that begins, nil for one that is not to
// be recorded.
func (r *Recorder) Begin() *Take {
	if (r.begun.Add(1)-1)%int64(r.config.Every) != 0 {
		return nil
	}
	return &Take{recorder: r}
}

// Close writes what waits, and ends the Recorder. It must be called once; takes
// that end later are not written. Its error is the end of ctx, where something
// still waited.
func (r *Recorder) Close(ctx context.Context) error {
	close(r.stop)
	select {
	case <-r.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("record in %s: %d exchanges were not written: %w", r.config.Dir, len(r.waiting), ctx.Err())
	}
}

func (r *Recorder) run() {
	defer close(r.stopped)
	for {
		select {
		case t := <-r.waiting:
			r.take(t)
		case <-r.stop:
			for len(r.waiting) > 0 {
				r.take(<-r.waiting)
			}
			return
		}
	}
}

// take writes one, and lets its memory go. A fault in it, of ours too, is the
// recording's and nobody else's.
func (r *Recorder) take(t *Take) {
	defer t.release()
	defer func() {
		if p := recover(); p != nil {
			r.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	r.write(t)
}

func (r *Recorder) write(t *Take) {
	rec := t.recording()
	rec.Note = "content as it passed"
	if !r.config.KeepContent {
		rec.Note = "content replaced by filler of the same length"
		if coding := rec.Head.coding(); coding != "" {
			rec.Note += ", content coding " + coding + " taken off"
		}
		if err := Fill(rec); err != nil {
			r.config.Count(CountCoding)
			return
		}
	}
	text, err := Append(nil, rec)
	if err == nil {
		err = r.shelf.put(rec.Name, text)
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.failing = false
}

// fail counts a fault, and logs the first of several in a row.
func (r *Recorder) fail(err error) {
	r.config.Count(CountFailed)
	if !r.failing {
		r.failing = true
		r.config.Logger.Warn("an exchange could not be recorded", "error", err)
	}
}

// hold counts n bytes of memory, and tells whether there is room for them. They
// are counted in any case.
func (r *Recorder) hold(n int) bool { return r.held.Add(int64(n)) <= maxHeld }
