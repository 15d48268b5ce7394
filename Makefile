# heaptap: what a person or a machine does with this checkout.
#
#   make demo        build the tools and look at a trace
#   make test        everything that must hold, about 4 minutes
#   make test-long   the same with many more cases and longer fuzzing
#   make bench       how fast traces are read and written
#   make install     PREFIX=/usr/local by default

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PREFIX ?= /usr/local
CARGO ?= cargo
# How long each fuzz target runs.
FUZZ_SECONDS ?= 20
FUZZ_TARGETS := $(notdir $(wildcard fuzz/corpus/*))
# How many cases each property test tries.
PROPTEST_CASES ?= 64
export PROPTEST_CASES

.PHONY: help
help:
	@sed -n 's/^#   //p' Makefile

# --- Looking -------------------------------------------------------------------

HEAPTAP := target/release/heaptap

.PHONY: build
build:
	$(CARGO) build --release -p heaptap-cli

DEMO := target/demo.ctf

# Until the tracer is built, of a trace that an example makes.
.PHONY: demo
demo: build
	$(CARGO) run --quiet --release -p heaptap-cli --example large_trace -- $(DEMO) 8 2
	$(HEAPTAP) info $(DEMO)
	$(HEAPTAP) check $(DEMO)
	$(HEAPTAP) dump $(DEMO) | head -n 3 | cut -c 1-160
	@echo
	@echo "The trace is $(DEMO). Try next:"
	@echo "  $(HEAPTAP) dump $(DEMO) | less -S      every event, one line each"
	@echo "  $(HEAPTAP) thin $(DEMO) small.ctf --rate 1e-6"
	@echo "  $(HEAPTAP) help                              all it can do"

# --- Testing -------------------------------------------------------------------

.PHONY: test
test: tools fmt clippy unit doc dependencies fuzz
	@echo "make test: all passed"

.PHONY: test-long
test-long:
	$(MAKE) test PROPTEST_CASES=2048 FUZZ_SECONDS=600

# Programs that the tests run. Absent, they are installed when we are root.
TOOLS := babeltrace2:babeltrace2 g++:g++ man:man-db

.PHONY: tools
tools:
	@missing=; for tool in $(TOOLS); do \
		command -v "$${tool%%:*}" >/dev/null || missing+=" $${tool##*:}"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ]; then \
		echo "make test needs these packages:$$missing" >&2; \
		echo "install them: sudo apt-get install$$missing" >&2; exit 1; \
	fi; \
	apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $$missing

.PHONY: fmt
fmt:
	$(CARGO) fmt --all --check
	cd fuzz && $(CARGO) fmt --check

.PHONY: clippy
clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# With HEAPTAP_TEST_ALL a missing tool fails a test instead of skipping it.
.PHONY: unit
unit:
	HEAPTAP_TEST_ALL=1 $(CARGO) test --workspace

.PHONY: doc
doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items -p heaptap -p heaptap-trace
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items -p heaptap-cli

# What a host would load, and what the format crate may use, is on a list.
.PHONY: dependencies
dependencies:
	@for package in heaptap heaptap-trace; do \
		$(CARGO) tree -e normal -p $$package --prefix none --format '{p}' \
			| sed 's/ v[0-9].*//' | sort -u | diff -u dependencies/$$package - \
			|| { echo "dependencies of $$package changed: see dependencies/README.md" >&2; exit 1; }; \
	done; echo "dependencies: as listed"

.PHONY: fuzz
fuzz:
	@for target in $(FUZZ_TARGETS); do fuzz/run $$target $(FUZZ_SECONDS); done

# --- Measuring -----------------------------------------------------------------

.PHONY: bench
bench:
	$(CARGO) bench -p heaptap-trace --bench trace

# --- Installing ----------------------------------------------------------------

.PHONY: install
install: build
	install -D -m 755 $(HEAPTAP) "$(DESTDIR)$(PREFIX)/bin/heaptap"
	install -d "$(DESTDIR)$(PREFIX)/share/man/man1"
	$(HEAPTAP) man "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -d "$(DESTDIR)$(PREFIX)/share/bash-completion/completions"
	$(HEAPTAP) completions bash > "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/heaptap"
