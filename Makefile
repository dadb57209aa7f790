# Every target is explained by `make help`.
GO       ?= go
CACHE    := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
LINT_VERSION := v2.15.0
LINT_DIR := $(CACHE)/tablectl-tools/golangci-lint-$(LINT_VERSION)
LINT     := $(LINT_DIR)/golangci-lint
FUZZTIME ?= 60s

.DEFAULT_GOAL := help
.PHONY: help build demo test race cover lint fmt check interop bench fuzz clean

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the static binary bin/tablectl
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/tablectl .

demo: build ## compact one partition of a sample table, in a temporary folder
	./testdata/demo.sh bin/tablectl

test: ## run all tests that need nothing but Go
	$(GO) test ./...

race: ## run them with the race detector
	$(GO) test -race ./...

cover: ## show how much of each package the tests reach
	$(GO) test -cover ./...

fmt: $(LINT) ## format the code
	$(LINT) fmt

lint: $(LINT) ## check format, imports and the rules in .golangci.yml
	$(LINT) fmt --diff
	$(LINT) run

$(LINT):
	GOBIN=$(LINT_DIR) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

check: ## what must hold for every commit: tidy, vet, lint, tests, race detector
	$(GO) mod tidy -diff
	$(GO) vet -tags interop,bench ./...
	$(GO) vet -tags failpoints ./cmd
	$(MAKE) lint
	$(MAKE) test
	$(GO) test -race ./cmd ./compact ./snapshot ./internal/datafile ./internal/fileio/...

interop: ## check against Java Paimon, pypaimon and paimon-rust (installs them)
	interop/setup.sh
	$(GO) test -tags interop -timeout 40m -count 1 ./interop

bench: ## measure plan, rewrite and commit, beside Java Paimon in the same run
	interop/setup.sh
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) test -tags bench -timeout 60m -count 1 -v ./interop -run TestBench

fuzz: ## run every fuzz target for FUZZTIME (60s)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$pkg; \
	  done; done

clean: ## remove what was built
	rm -rf bin
