# heaptap: what a person or a machine does with this checkout.
#
#   make demo        trace a program and see where its memory went
#   make check       the daily loop: format, clippy, tests of the packages that changed, a few minutes
#   make test        everything that must hold, some 40 minutes
#   make test-long   the same with many more cases, longer fuzzing, a minute of 64 threads, 48 minutes of domains, 700 snapshots, 200 starts in each program
#   make bench       what a sample costs, what tracing costs, how fast traces are read and written
#   make viewer      build the page of `heaptap serve` and `export --to html` from viewer/src
#   make install     the program, the library and all that belongs to them; PREFIX=/usr/local by default
#   make uninstall   removes them again
#   make deb         a package for Debian 12

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# How long each fuzz target runs.
FUZZ_SECONDS ?= 20
FUZZ_TARGETS := $(notdir $(wildcard fuzz/corpus/*))
# How many cases each property test tries.
PROPTEST_CASES ?= 64
export PROPTEST_CASES
# quick or long: how far the tests of the C side go.
C_TESTS ?= quick
# Other compilers of OCaml 4 than the distribution's, each built once.
OCAML_VERSIONS ?= 4.14.1

.PHONY: help
help:
	@sed -n 's/^#   //p' Makefile

# --- Looking -------------------------------------------------------------------

# Cargo's directory: CARGO_TARGET_DIR, if it is set.
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET_DIR)/release
HEAPTAP := $(RELEASE)/heaptap
LIBRARY := $(RELEASE)/libheaptap
# For the tests of C and OCaml.
export HEAPTAP_LIBDIR := $(abspath $(RELEASE))

# What is shipped is built by package: a build of the whole workspace may unify features.
.PHONY: build
build:
	$(CARGO) build --release -p heaptap
	$(CARGO) build --release -p heaptap-ocaml-object
	crates/ocaml-object/link $(RELEASE)
	$(CARGO) build --release -p heaptap-cli

# Built by one call, without the optimisation across crates, which only what is shipped needs, and without Parquet, which
# takes as long as the rest.
DEMO_DIR := $(TARGET_DIR)/demo
DEMO_TOOL := $(DEMO_DIR)/heaptap
DEMO := target/demo.ctf
DEMO_PAGE := target/demo.html

.PHONY: demo
demo:
	$(CARGO) build --profile demo -p heaptap -p heaptap-cli --no-default-features
	@$(MAKE) --no-print-directory -s -C c-tests demo BUILD='$(abspath $(DEMO_DIR))/c-tests' HEAPTAP_LIBDIR='$(abspath $(DEMO_DIR))'
	@rm -f $(DEMO)
	HEAPTAP=$(DEMO) HEAPTAP_RATE=1e-3 $(DEMO_DIR)/c-tests/plain/server 300000
	$(DEMO_TOOL) report $(DEMO)
	$(DEMO_TOOL) export $(DEMO) --to html -o $(DEMO_PAGE)
	@echo
	@echo "That was c-tests/programs/server.c, on the runtime in c-tests/runtime. The trace is $(DEMO)."
	@echo "Try next:"
	@echo "  $(DEMO_TOOL) dump $(DEMO) | less -S         every event, one line each"
	@echo "  $(DEMO_TOOL) help                              all it can do"
	@echo "  docs/embedding.md                              how a runtime is wired to it"
	@echo "Or look at it in the browser (the page $(DEMO_PAGE) needs no server):"
	@echo "  $(DEMO_TOOL) serve $(DEMO)"

# --- Testing -------------------------------------------------------------------

# Packages with changes since this commit are tested; `make check SINCE=v0.1.0` takes more.
SINCE ?= HEAD

.PHONY: check
check: fmt clippy
	$(CARGO) test --test layers
	@packages=$$(git diff --name-only $(SINCE) -- | sed -nE \
		-e 's#^crates/([^/]+)/.*#-p heaptap-\1#p' -e 's#^(src|tests|benches|include)/.*#-p heaptap#p' \
		| sort -u); \
	if [ -z "$$packages" ]; then echo "make check: nothing changed since $(SINCE)"; exit 0; fi; \
	echo $(CARGO) test $$packages; $(CARGO) test $$packages

# Two chains run side by side: what cargo builds for debugging, and what it builds for release. The scenarios of C and
# OCaml need the processors for themselves.
DEBUG_CHAIN := fmt clippy unit doc dependencies
RELEASE_CHAIN := build exports install-tests docs-tests viewer-check loom fuzz

.PHONY: test
test: tools consumers
	$(MAKE) --no-print-directory -j2 --output-sync=target CHAINED=yes $(DEBUG_CHAIN) $(RELEASE_CHAIN)
	$(MAKE) --no-print-directory c-tests ocaml-tests lua-tests ruby-tests viewer-tests
	@echo "make test: all passed"

ifdef CHAINED
# What runs in a chain must not look for this make's other jobs: it has none of their file descriptors.
unexport MAKEFLAGS MFLAGS
# Each target of a chain waits for the one before it.
chain = $(foreach n,$(shell seq 2 $(words $1)),$(eval $(word $n,$1): $(word $(shell expr $n - 1),$1)))
$(call chain,$(DEBUG_CHAIN))
$(call chain,$(RELEASE_CHAIN))
endif

.PHONY: test-long
test-long:
	HEAPTAP_TEST_SPARK=1 HEAPTAP_ESTIMATE_WORDS=1e8 HEAPTAP_LEAK_RUNS=20 HEAPTAP_INTERVAL_RUNS=200 HEAPTAP_OVERFLOW_KIB=4096 \
		HEAPTAP_MOMENTS=500 HEAPTAP_DOMAIN_SNAPSHOTS=200 HEAPTAP_SESSIONS=200 HEAPTAP_SERIES_KILLS=24 HEAPTAP_GARBAGE=100000 HEAPTAP_BUDGET_RUNS=50 \
		HEAPTAP_INJECTIONS=1000 HEAPTAP_KILLS=1000 HEAPTAP_ATTACHES=1000 HEAPTAP_ATTACH_KILLS=1000 $(MAKE) test \
		PROPTEST_CASES=2048 FUZZ_SECONDS=600 C_TESTS=long SECONDS_OF_STRESS=720 OCAML_VERSIONS='4.14.1 4.12.0' CONSUMERS=spark

# Programs that the tests run, and files of packages that have none. Absent, they are installed when we are root.
TOOLS := babeltrace2:babeltrace2 dpkg-shlibdeps:dpkg-dev g++:g++ man:man-db pkg-config:pkg-config \
	python3:python3 strace:strace valgrind:valgrind \
	coqc:coq ocamlfind:ocaml-findlib ocamlopt:ocaml-nox dune:ocaml-dune menhir:menhir ocamlbuild:ocamlbuild \
	ruby:ruby ruby:ruby-webrick lua5.4:lua5.4 luajit:luajit \
	go:golang-go node:nodejs npm:npm chromium:chromium tmux:tmux pip3:python3-pip \
	$(if $(CONSUMERS),java:default-jre-headless)
# What the tests on Lua need beside the interpreter.
LUA_MODULES := /usr/lib/x86_64-linux-gnu/lua/5.4
TOOL_FILES := /usr/include/lua5.4/lua.h:liblua5.4-dev $(LUA_MODULES)/lpeg.so:lua-lpeg $(LUA_MODULES)/cjson.so:lua-cjson

.PHONY: tools
tools:
	@missing=; for tool in $(TOOLS); do \
		command -v "$${tool%%:*}" >/dev/null || missing+=" $${tool##*:}"; \
	done; \
	for file in $(TOOL_FILES); do \
		[ -e "$${file%%:*}" ] || missing+=" $${file##*:}"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ]; then \
		echo "make test needs these packages:$$missing" >&2; \
		echo "install them: sudo apt-get install$$missing" >&2; exit 1; \
	fi; \
	apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $$missing

# Tools from npm and PyPI that open what `heaptap export` writes, into a cache outside the checkout.
# CONSUMERS=spark gets the large one too.
CONSUMERS ?=
.PHONY: consumers
consumers:
	@crates/cli/tests/consumers/fetch $(CONSUMERS)

# The page of `heaptap export --to html` and `heaptap serve`, which is committed as built.
.PHONY: viewer
viewer:
	viewer/build
	crates/query/build

# The picture in README, of `make demo`'s page.
.PHONY: picture
picture: demo
	viewer/provide
	node viewer/picture.mjs $(DEMO_PAGE) docs/viewer.png

# What is committed is what the sources make, byte for byte.
.PHONY: viewer-check
viewer-check:
	viewer/build --check
	crates/query/build --check

# The page in a browser; screenshots are kept in target/viewer-screenshots.
.PHONY: viewer-tests
viewer-tests: build
	viewer/provide
	$(CARGO) build -p heaptap-cli --example viewer_traces
	HEAPTAP='$(abspath $(HEAPTAP))' TRACES='$(abspath $(TARGET_DIR))/debug/examples/viewer_traces' \
		SCREENSHOTS='$(abspath $(TARGET_DIR))/viewer-screenshots' \
		node --test --test-concurrency=2 $(wildcard viewer/tests/*.test.mjs)

.PHONY: fmt
fmt:
	$(CARGO) fmt --all --check
	cd fuzz && $(CARGO) fmt --check

.PHONY: clippy
clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy -p heaptap-export --features otlp --all-targets -- -D warnings
	$(CARGO) clippy -p heaptap-cli --no-default-features -- -D warnings

# With HEAPTAP_TEST_ALL a missing tool fails a test instead of skipping it.
.PHONY: unit
unit:
	HEAPTAP_TEST_ALL=1 $(CARGO) test --workspace
	$(CARGO) test -p heaptap-export --features otlp --test otlp

# Every order in which the threads of the hand-over can meet, within bounds. A build of its own.
.PHONY: loom
loom:
	CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" $(CARGO) test --profile loom --lib -p heaptap queue::tests

# What the library exports is what the header declares; tests/header.rs writes the list.
.PHONY: exports
exports:
	@nm -D --defined-only $(LIBRARY).so | awk '{ print $$3 }' | sort | diff -u include/exports - \
		|| { echo "the library does not export what the header declares, see include/exports" >&2; exit 1; }
	@echo "exports: as listed"

# Runs the commands in README.md and docs/, and compares what they print with the text.
.PHONY: docs-tests
docs-tests:
	docs/test '$(RELEASE)'

# What a C host sees: the reference runtime, its programs, misuse, endings; under ASan, TSan, valgrind.
.PHONY: c-tests
c-tests:
	$(MAKE) --no-print-directory -C c-tests header
	$(MAKE) --no-print-directory -C c-tests $(C_TESTS)

# OCaml programs from the distribution's compiler, traced as they are.
.PHONY: ocaml-tests
ocaml-tests:
	$(MAKE) --no-print-directory -C ocaml-tests test
	@for version in $(OCAML_VERSIONS); do \
		$(MAKE) --no-print-directory -C ocaml-tests versions OCAML=$$version; \
	done
	$(MAKE) --no-print-directory -C ocaml-tests test5

# Ruby programs from the distribution, traced as they are.
.PHONY: ruby-tests
ruby-tests:
	$(MAKE) --no-print-directory -C ruby-tests test

# The distribution's Lua, traced as it is.
.PHONY: lua-tests
lua-tests:
	$(MAKE) --no-print-directory -C lua-tests test

.PHONY: doc
doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items --workspace --exclude heaptap-cli
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items -p heaptap-cli

# What a host would load, and what the format crate may use, is on a list.
.PHONY: dependencies
dependencies:
	@for package in heaptap heaptap-codec heaptap-control heaptap-heap heaptap-probes heaptap-trace; do \
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
	$(CARGO) bench -p heaptap-heap --bench snapshot
	$(CARGO) bench -p heaptap-report --bench past
	$(CARGO) bench -p heaptap
	benches/overhead
	benches/startup
	benches/snapshot
	benches/viewer
	benches/domains
	benches/live

# --- Installing ----------------------------------------------------------------

include packaging/install.mk
