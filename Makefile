# Everything that is built, checked or shown. `make help` lists it.
#
# Needed: Go, Python 3 (for Envoy's package) and make; a C compiler for the race
# detector. Other tools are pinned in internal/tools and installed on first use.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Where tools go. Outside the checkout, several checkouts share them.
TOOLS ?= $(CURDIR)/.tools
export TOOLS
export INFERSPAN_TOOLS := $(TOOLS)
export INFERSPAN_ENVOY := $(TOOLS)/envoy/bin/envoy
# The program that integration and e2e run: what `make build` builds.
export INFERSPAN_BINARY := $(CURDIR)/bin/inferspan

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Seconds for each fuzz target.
FUZZTIME ?= 5
DEMO_SECONDS ?= 60

# Only the race detector needs cgo; what is delivered has none of it.
export CGO_ENABLED := 0
RACE := $(shell command -v $$(go env CC) >/dev/null 2>&1 && echo -race)

.PHONY: help
help: ## List the targets
	@sed -n -E 's/^([a-z0-9-]+):[^#]*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{printf "  make %-14s %s\n", $$1, $$2}'

##@ Build

.PHONY: build
build: ## Build bin/inferspan
	@echo "build: bin/inferspan $(VERSION)"
	@go build -trimpath -ldflags '$(LDFLAGS)' -o bin/inferspan ./cmd/inferspan

.PHONY: demo
demo: tool-envoy build ## Show it at work: Envoy, three stand-in servers, clients; DEMO_SECONDS long
	@echo "build: bin/demo"
	@go build -trimpath -o bin/demo ./internal/demo
	@exec bin/demo --envoy $(INFERSPAN_ENVOY) --inferspan $(INFERSPAN_BINARY) --seconds $(DEMO_SECONDS)

.PHONY: dashboards
dashboards: ## Write the dashboards' JSON anew
	@go generate ./dashboards/...

.PHONY: generate
generate: ## Write every generated file anew
	@go generate ./...

##@ Check

.PHONY: test
test: lint unit coverage rules fuzz integration ## All checks that need no more than Envoy: lint, unit, coverage, rules, fuzz, integration

.PHONY: lint
lint: tool-golangci-lint ## Run the linters
	@echo "lint: golangci-lint"
	@$(TOOLS)/bin/golangci-lint run

.PHONY: unit
unit: tool-envoy build ## Run the unit tests, with the race detector where a C compiler is found
	@echo "unit: go test $(or $(RACE),without the race detector: no C compiler)"
	@CGO_ENABLED=$(if $(RACE),1,0) go test $(RACE) ./...

.PHONY: coverage
coverage: ## Check that the measuring core's own tests cover it, but for what says why not
	@internal/tools/coverage.sh 95 processor/sse processor/dialect processor/meter

.PHONY: rules
rules: ## Switch each rule of token evidence off, and check that a test fails (minutes)
	@echo "rules: go test -tags rules"
	@go test -count=1 -tags rules -timeout 20m ./internal/rules

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME seconds
	@internal/tools/fuzz.sh $(FUZZTIME)

.PHONY: integration
integration: tool-envoy build ## Run the real Envoy with every delivered configuration
	@echo "integration: go test -tags integration"
	@go test -count=1 -tags integration -timeout 20m ./internal/integration/...

.PHONY: e2e
e2e: tool-envoy tool-collector tool-prometheus tool-jaeger build ## Check what arrives in the real Collector, Prometheus and Jaeger
	@echo "e2e: go test -tags e2e"
	@go test -count=1 -tags e2e -timeout 15m -v ./internal/e2e/...

.PHONY: e2e-k8s
e2e-k8s: tool-envoy tool-etcd tool-kube-apiserver build ## Discover in Kubernetes, by a real API server, and have it check deploy/kubernetes
	@echo "e2e-k8s: go test -tags e2e_k8s"
	@go test -count=1 -tags e2e_k8s -timeout 10m -v ./internal/e2e/kubernetes

.PHONY: e2e-vllm
e2e-vllm: tool-envoy build ## Compare with the counters of a real vLLM on the CPU (7 GB, minutes)
	@internal/vllm/run.sh

.PHONY: sim
sim: ## Show what the routing policies are worth in a simulated fleet
	@go run ./internal/sim

.PHONY: bench
bench: ## Run the benchmarks
	@go test -run '^$$' -bench . -benchmem ./...

.PHONY: budgets
budgets: tool-envoy build ## Compare what Inferspan costs with a stock processor, and with the budgets (minutes)
	@go test -run '^$$' -bench CPU -benchtime 20x -timeout 30m ./internal/budget
	@go test -run '^$$' -bench Memory -benchtime 3x -timeout 30m ./internal/budget
	@go test -tags integration -run '^$$' -bench Envoy -benchtime 20x -timeout 30m ./internal/integration

##@ Tools

.PHONY: tools
tools: tool-envoy tool-golangci-lint tool-collector tool-prometheus tool-jaeger tool-etcd tool-kube-apiserver ## Install every tool (half an hour on two cores, once)

.PHONY: tool-envoy tool-golangci-lint tool-collector tool-prometheus tool-jaeger tool-etcd tool-kube-apiserver
tool-envoy tool-golangci-lint tool-collector tool-prometheus tool-jaeger tool-etcd tool-kube-apiserver: tool-%:
	@internal/tools/$*.sh

.PHONY: clean
clean: ## Remove what was built; tools stay
	@rm -rf bin
