package testkit

import (
	"fmt"
	"net"
	"strings"
)

// EnvoyAddrs are the addresses that take the place of the ones in the files of
// deploy/envoy.
type EnvoyAddrs struct {
	Processor string    // for 127.0.0.1:9002
	VLLM      [2]string // for 127.0.0.1:8001 and :8002
}

// RenderEnvoy returns a configuration of deploy/envoy with other addresses; the
// listener and the admin interface get free ports of 127.0.0.1. It fails when
// one of the addresses does not stand exactly once in the file.
func RenderEnvoy(config string, a EnvoyAddrs) (string, error) {
	for _, r := range [][2]string{
		{"127.0.0.1:9901", "127.0.0.1:0"},
		{"0.0.0.0:10000", "127.0.0.1:0"},
		{"127.0.0.1:9002", a.Processor},
		{"127.0.0.1:8001", a.VLLM[0]},
		{"127.0.0.1:8002", a.VLLM[1]},
	} {
		from, err := socketAddress(r[0])
		if err != nil {
			return "", err
		}
		to, err := socketAddress(r[1])
		if err != nil {
			return "", err
		}
		if n := strings.Count(config, from); n != 1 {
			return "", fmt.Errorf("rendering an Envoy configuration: %q stands %d times in it, not once", from, n)
		}
		config = strings.Replace(config, from, to, 1)
	}
	return config, nil
}

func socketAddress(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("rendering an Envoy configuration: address %q: %w", addr, err)
	}
	return fmt.Sprintf("{address: %s, port_value: %s}", host, port), nil
}
