// Package vllm compares Inferspan with a real vLLM server on a CPU, behind the
// real Envoy: tokens with the server's own counters, spans with its spans, and
// the OpenAI client in front. Its test has the build tag vllm; run.sh installs
// what it needs (7 GB) and runs it.
package vllm
