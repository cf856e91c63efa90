package main

import (
	"container/heap"
	"time"
)

// clock is simulated time: it stands still while something happens, and goes on
// to the next thing that is due. Things that are due at once happen in the
// order in which they were asked for.
type clock struct {
	now   time.Duration
	next  events
	count int
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

// after has do happen d from now.
func (c *clock) after(d time.Duration, do func()) {
	c.count++
	heap.Push(&c.next, event{at: c.now + max(d, 0), order: c.count, do: do})
}

// run has everything happen until end.
func (c *clock) run(end time.Duration) {
	for len(c.next) > 0 && c.next[0].at <= end {
		e := heap.Pop(&c.next).(event) //nolint:forcetypeassert // it holds nothing else
		c.now = e.at
		e.do()
	}
	c.now = end
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) } //nolint:forcetypeassert // heap gives what it was given
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}
