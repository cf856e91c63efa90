package discover

import (
	"context"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/inferspan/inferspan/internal/testkit/bubble"
	"github.com/inferspan/inferspan/internal/testkit/zone"
)

// atZone is a source of the A records of the name vllm of z.
func atZone(z *zone.Server) DNS {
	return DNS{
		Name: "vllm.", Record: RecordA, Port: 8000, Server: z.Addr,
		MinInterval: time.Second, MaxInterval: 5 * time.Minute,
		KeepAbsent: 30 * time.Second, KeepFailed: 10 * time.Minute,
	}
}

// The next question is asked when the answer has run out, within the bounds.
func TestDNS_TTL(t *testing.T) {
	z := zone.Serve(t)
	z.Set("vllm. A", zone.Records("vllm. 30 A 10.0.0.2", "vllm. 20 A 10.0.0.1"))
	follow(t, atZone(z), func(h *heard) {
		h.want(t, "0s found 10.0.0.1:8000 10.0.0.2:8000")
		bubble.Pass(10 * time.Second)
		z.Set("vllm. A", zone.Records("vllm. 0 A 10.0.0.3"))
		bubble.Pass(12500 * time.Millisecond) // to 22.5 s: one, and two by the least interval
		h.want(t, "20s found 10.0.0.3:8000", "21s found 10.0.0.3:8000", "22s found 10.0.0.3:8000")
		z.Set("vllm. A", zone.Records("vllm. 86400 A 10.0.0.3"))
		bubble.Pass(10 * time.Minute)
		h.want(t, "23s found 10.0.0.3:8000", "5m23s found 10.0.0.3:8000")
	})
}

// A name that has gone takes its endpoints with it, after a while: the server
// may just have lost sight of it.
func TestDNS_Absent(t *testing.T) {
	z := zone.Serve(t)
	z.Set("vllm. A", zone.Records("vllm. 10 A 10.0.0.1"))
	const gone = "look up the A records of vllm.: there is no such name"
	follow(t, atZone(z), func(h *heard) {
		h.want(t, "0s found 10.0.0.1:8000")
		z.Set("vllm. A", zone.Code(dns.RcodeNameError, ". 12 SOA a. b. 1 2 3 4 60"))
		bubble.Pass(15 * time.Second)
		h.want(t, "10s failed: "+gone)
		z.Set("vllm. A", zone.Records("vllm. 10 A 10.0.0.1"))
		bubble.Pass(10 * time.Second)
		h.want(t, "22s found 10.0.0.1:8000")
		z.Set("vllm. A", zone.Code(dns.RcodeSuccess, ". 12 SOA a. b. 1 2 3 4 60"))
		const empty = "look up the A records of vllm.: the name has no such records"
		bubble.Pass(50 * time.Second)
		h.want(t, "32s failed: "+empty, "44s failed: "+empty, "56s failed: "+empty, "1m2s lost: "+empty, "1m14s lost: "+empty)
		z.Set("vllm. A", zone.Records("vllm. 10 A 10.0.0.1"))
		bubble.Pass(12 * time.Second)
		h.want(t, "1m26s found 10.0.0.1:8000")
	})
}

// A server that can't tell changes nothing for long, and is asked ever less.
func TestDNS_Failed(t *testing.T) {
	z := zone.Serve(t)
	z.Set("vllm. A", zone.Records("vllm. 10 A 10.0.0.1"))
	d := atZone(z)
	d.KeepFailed = time.Minute
	why := "look up the A records of vllm.: ask " + z.Addr + ": it answers SERVFAIL"
	follow(t, d, func(h *heard) {
		h.want(t, "0s found 10.0.0.1:8000")
		z.Set("vllm. A", zone.Code(dns.RcodeServerFailure))
		bubble.Pass(45 * time.Second)
		h.want(t, "10s failed: "+why, "11s failed: "+why, "13s failed: "+why, "17s failed: "+why, "25s failed: "+why, "41s failed: "+why)
		z.Set("vllm. A", zone.Records("vllm. 10 A 10.0.0.1"))
		bubble.Pass(27 * time.Second)
		h.want(t, "1m10s found 10.0.0.1:8000") // asked once more when the time was up
		z.Set("vllm. A", zone.Code(dns.RcodeServerFailure))
		bubble.Pass(75 * time.Second)
		h.want(t, "1m20s failed: "+why, "1m21s failed: "+why, "1m23s failed: "+why, "1m27s failed: "+why, "1m35s failed: "+why,
			"1m51s failed: "+why, "2m20s lost: "+why)
		bubble.Pass(45 * time.Second)
		h.want(t, "2m50s failed: "+why) // it is lost already
	})
}

// What was never known is not known to be nothing.
func TestDNS_AtFirst(t *testing.T) {
	z := zone.Serve(t)
	follow(t, atZone(z), func(h *heard) {
		h.want(t, "0s lost: look up the A records of vllm.: there is no such name")
	})
	z.Set("vllm. A", zone.Code(dns.RcodeServerFailure))
	d := atZone(z)
	d.KeepFailed = 0
	follow(t, d, func(h *heard) {
		h.want(t, "0s failed: look up the A records of vllm.: ask "+z.Addr+": it answers SERVFAIL")
	})
}

// The end does not wait for a server that does not answer.
func TestDNS_EndWhileAsking(t *testing.T) {
	z := zone.Serve(t)
	asked := make(chan struct{}, 100)
	z.Set("vllm. A", func(dns.ResponseWriter, *dns.Msg) { asked <- struct{}{} })
	h := newHeard()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- atZone(z).Run(ctx, h) }()
	<-asked
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	h.want(t)
}
