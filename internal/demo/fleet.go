package main

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/inferspan/inferspan/internal/testkit"
)

// play is a request that the client makes and how a server answers it: an
// exchange that was recorded with a real vLLM.
type play struct {
	name  string // the recording's
	share int    // of the sum of all shares
	model string // what the client asks for; the servers know it as recorded
	call  testkit.Call
	// script is the answer at the recorded speed.
	script testkit.Script
	stream bool
}

// plays is one of every kind that is worth a look. Inferspan rewrites the model
// "assistant" to the servers' own name.
func plays() []play {
	return []play{
		{name: "chat-usage", share: 4, model: "tiny", stream: true},
		{name: "chat-continuous-usage", share: 4, model: "assistant", stream: true},
		{name: "comp-usage", share: 3, model: "tiny", stream: true},
		{name: "chat-reasoning", share: 3, model: "assistant", stream: true},
		{name: "chat-tool-required", share: 2, model: "tiny", stream: true},
		{name: "chat-n2", share: 1, model: "tiny", stream: true},
		{name: "chat-no-usage", share: 1, model: "tiny", stream: true},
		{name: "chat-json", share: 2, model: "assistant"},
		{name: "chat-long-600", share: 1, model: "tiny", stream: true},
		{name: "engine-dies-midstream", share: 1, model: "tiny", stream: true},
	}
}

// readPlays reads the recordings that the plays are of.
func readPlays(dir string) ([]play, error) {
	all := plays()
	for i := range all {
		p := &all[i]
		var err error
		if p.call, p.script, err = testkit.ReadRecording(filepath.Join(dir, p.name+".jsonl")); err != nil {
			return nil, err
		}
		model := []byte(`"model":"tiny"`)
		if bytes.Count(p.call.Body, model) != 1 {
			return nil, fmt.Errorf("reading the recording %s: its request does not ask for %s", p.name, model)
		}
		p.call.Body = bytes.Replace(p.call.Body, model, fmt.Appendf(nil, `"model":%q`, p.model), 1)
	}
	return all, nil
}

// server is a stand-in vLLM that plays its recordings at a speed of its own.
type server struct {
	*testkit.VLLM
	speed float64
}

// startFleet starts three servers, or none.
func startFleet(all []play) (fleet []*server, err error) {
	defer func() {
		if err != nil {
			for _, s := range fleet {
				_ = s.Close() // the first fault says it all
			}
			fleet = nil
		}
	}()
	for _, speed := range []float64{1, 0.5, 0.25} {
		scripts := make(map[string]testkit.Script, len(all))
		for _, p := range all {
			scripts[p.name] = p.script.Scaled(speed)
		}
		v, err := testkit.NewVLLM(testkit.VLLMOptions{Scripts: scripts, FreshIDs: true})
		if err != nil {
			return fleet, err
		}
		fleet = append(fleet, &server{VLLM: v, speed: speed})
	}
	return fleet, nil
}
