package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/journal"
)

const (
	lookupTimeout = 10 * time.Second
	lookupBytes   = 64 << 20 // of an answer
)

// lookup shows the records that a running Inferspan has of an id.
func lookup(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := newFlags("lookup", "ID [--admin URL] [--jaeger URL [--service NAME]] [--json]", stderr)
	at := flags.String("admin", "http://"+string(config.Default().Admin), "where the admin side serves")
	past := flags.String("jaeger", "", "the Jaeger to ask where the journal has no record")
	service := flags.String("service", "inferspan", "the service that its spans are of")
	raw := flags.Bool("json", false, "print the records, one a line")
	ids, ok := operands(flags, args, 1)
	if !ok {
		return exitUsage
	}
	base, err := baseURL("--admin", *at, "http://127.0.0.1:9464")
	if err == nil && *past != "" {
		*past, err = baseURL("--jaeger", *past, "http://127.0.0.1:16686")
	}
	if err == nil && ids[0] == "" {
		err = errors.New("the ID is empty, want a request id, trace id or response id")
	}
	if err != nil {
		writef(stderr, "inferspan lookup: %v\n", err)
		return exitUsage
	}
	records, err := fetch(ctx, base, ids[0])
	if err != nil && *past != "" {
		missed := err
		if records, err = (jaeger{base: *past, service: *service}).lookup(ctx, ids[0]); err != nil {
			err = fmt.Errorf("%w; %w", missed, err)
		} else {
			writef(stderr, "inferspan lookup: %v; this is what Jaeger's span says: of events, frames and bytes nothing\n", missed)
		}
	}
	if err == nil {
		err = show(stdout, records, *raw)
	}
	if err != nil {
		writef(stderr, "inferspan lookup: %v\n", err)
		return exitFault
	}
	return 0
}

// baseURL takes the URL of the named flag, or host:port alone as the
// configuration has it.
func baseURL(flag, text, example string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" {
		return "", fmt.Errorf("%s is %q, want a URL such as %s", flag, text, example)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// fetch returns the records of id, newest first, each a JSON object.
func fetch(ctx context.Context, base, id string) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+journal.Path(id), nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", base, err)
	}
	req.Close = true // one question, one connection
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, noAnswer(base, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, lookupBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(base, id, resp.StatusCode, body)
	}
	var records [][]byte
	for line := range bytes.Lines(body) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		// What is no JSON may hold bytes that steer a terminal.
		if !json.Valid(line) {
			return nil, fmt.Errorf("the answer of %s is no record: %.80q", base, line)
		}
		records = append(records, line)
	}
	return records, nil
}

func noAnswer(base string, err error) error {
	// The URL is named already, and the id in it is the user's own.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	const hint = "set --admin to the `admin` address of its configuration"
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody listens at %s (connection refused): is inferspan serve running? If elsewhere, %s", base, hint)
	case ok && timeout.Timeout():
		return fmt.Errorf("no answer from %s within %s: %s", base, lookupTimeout, hint)
	}
	return fmt.Errorf("no answer from %s: %w: %s", base, err, hint)
}

// refusal says why there is no record.
func refusal(base, id string, status int, body []byte) error {
	var fault struct {
		Error   string     `json:"error"`
		Records *int       `json:"records"`
		Since   *time.Time `json:"since"`
	}
	if err := json.Unmarshal(body, &fault); err != nil || fault.Error == "" {
		return fmt.Errorf("%s answered %d and is no Inferspan: set --admin to the `admin` address of its configuration", base, status)
	}
	if status != http.StatusNotFound || fault.Records == nil {
		return fmt.Errorf("%s answered %d: %q", base, status, fault.Error)
	}
	const hint = "(a request comes into it when it has ended; of several Inferspans, one has it)"
	if fault.Since == nil {
		return fmt.Errorf("no record of %q: the journal of %s is empty %s", id, base, hint)
	}
	return fmt.Errorf("no record of %q: the journal of %s holds %d, the first begun %s %s", id, base, *fault.Records, fault.Since.UTC().Format(time.RFC3339), hint)
}

// show prints records as they came, or as waterfalls with a line between.
func show(w io.Writer, records [][]byte, raw bool) error {
	for i, line := range records {
		if raw {
			writef(w, "%s\n", line)
			continue
		}
		r, err := journal.Decode(line)
		if err != nil {
			return fmt.Errorf("show a record: %w", err)
		}
		if i > 0 {
			writef(w, "\n")
		}
		if err := journal.Waterfall(w, r, waterfallWidth); err != nil {
			return fmt.Errorf("show a record: %w", err)
		}
	}
	return nil
}
