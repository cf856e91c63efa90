package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// line is any line of an inferspan-exchange/1 file.
type line struct {
	Name    string `json:"name"`
	Request struct {
		Method  string      `json:"method"`
		Path    string      `json:"path"`
		Headers [][2]string `json:"headers"`
		Body    string      `json:"body"`
	} `json:"request"`
	AtUS    int64       `json:"at_us"`
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Data    string      `json:"data"`
	DataB64 []byte      `json:"data_b64"`
	End     string      `json:"end"`
}

// ReadRecording reads a recorded exchange as the call that was made and the
// script that answers it. What the client closed, the server holds open.
func ReadRecording(file string) (Call, Script, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Call{}, Script{}, fmt.Errorf("reading a recording: %w", err)
	}
	var call Call
	var s Script
	number := 0
	for text := range bytes.Lines(data) {
		number++
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return Call{}, Script{}, fmt.Errorf("reading %s, line %d: %w", file, number, err)
		}
		at := time.Duration(l.AtUS) * time.Microsecond
		switch {
		case number == 1:
			s.Name = l.Name
			call = Call{Method: l.Request.Method, Path: l.Request.Path, Header: headers(l.Request.Headers)}
			if l.Request.Body != "" {
				call.Body = []byte(l.Request.Body)
			}
		case l.Status != 0:
			s.HeadAt, s.Status, s.Header = at, l.Status, headers(l.Headers)
		case l.End != "":
			s.EndAt, s.End = at, End(l.End)
			if l.End == "client_closed" || l.End == "timeout" {
				s.End = EndHold
			}
		case l.Data != "":
			s.Pieces = append(s.Pieces, Piece{At: at, Data: []byte(l.Data)})
		case len(l.DataB64) > 0:
			s.Pieces = append(s.Pieces, Piece{At: at, Data: l.DataB64})
		}
	}
	if s.Status == 0 || s.End == "" {
		return Call{}, Script{}, fmt.Errorf("reading %s: it has no response head or no end", file)
	}
	return call, s, nil
}

func headers(pairs [][2]string) []Header {
	all := make([]Header, len(pairs))
	for i, p := range pairs {
		all[i] = Header{p[0], p[1]}
	}
	return all
}
