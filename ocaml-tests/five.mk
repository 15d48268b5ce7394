# OCaml 5: every domain. Called by the Makefile beside it, as `make test5`.
#
#   make -f five.mk test                         every scenario (about three minutes on two cores)
#   make -f five.mk test ONLY='five_exact.*'     some of them
#   make -f five.mk test SECONDS_OF_STRESS=1800  a longer stress
#   make -f five.mk test OCAML5=PREFIX           with another OCaml 5, say 5.4
#
# The compiler is the one that `provide` builds, once. Programs are those for OCaml 4,
# and those in programs5, which come first where both have one of a name.

OCAML5 ?= $(shell ./provide 5.3.0)
BUILD ?= ../target/ocaml-tests
HEAPTAP_LIBDIR ?= ../target/release
HEAPTAP ?= $(HEAPTAP_LIBDIR)/heaptap
ONLY ?=
export SECONDS_OF_STRESS ?= 6

ifeq ($(OCAML5),)
$(error no OCaml 5 could be built: ./provide 5.3.0 says why)
endif

OUT := $(abspath $(BUILD))/five
OCAMLOPT := $(OCAML5)/bin/ocamlopt
OCAMLC := $(OCAML5)/bin/ocamlc
INCLUDES := -I +unix -I +threads -I +dynlink
SOURCES := $(wildcard programs/* programs5/*)

OLD := young major marshalled bigarrays threads signals exceptions weak callbacks stacks endings storm \
	parameters asked named moments planted habits polling nested slices rotated recorded
NEW := holding many lives reuse own_profile forks overflow busy everything deep kept left unswept waiting paced sites stuck switched
PLAIN := $(OLD) $(NEW)
NATIVE := $(addprefix $(OUT)/,$(PLAIN) host)
DEBUG := $(addsuffix .debug,$(NATIVE))
BYTECODE := $(addprefix $(OUT)/,$(addsuffix .byte,$(PLAIN) host loader))
PLUGINS := $(addprefix $(OUT)/,plugin.cmxs plugin.cmo loaded.cmo plugins.cma)

.PHONY: build
build: $(NATIVE) $(DEBUG) $(BYTECODE) $(PLUGINS) $(OUT)/kept_at_exit.so

# The programs are compiled side by side: each has a directory of its own.
.PHONY: test
test:
	$(MAKE) --no-print-directory -f five.mk -j"$$(nproc)" build
	python3 tests/five.py --build '$(OUT)' --libdir '$(HEAPTAP_LIBDIR)' --heaptap '$(HEAPTAP)' \
		--ocaml '$(OCAML5)' $(ONLY)

# What each program is made of, besides itself and its own stubs.
WORKS := team.ml trees.ml comings.ml fibers.ml threads_within.ml resizing.ml compaction.ml marshalling.ml \
	weaklings.ml outside.ml locals.ml calls.ml raising.ml turns.ml
OF_many := callbacks_stubs.c $(WORKS)
OF_stacks := callbacks_stubs.c
OF_lives := team.ml
OF_reuse := team.ml reuse_stubs.c
OF_busy := team.ml
OF_paced := team.ml
OF_sites := team.ml
OF_everything := team.ml
OF_forks := team.ml trees.ml
OF_overflow := team.ml fibers.ml
OF_waiting := waiting_stubs.c
OF_kept := kept_stubs.c
OF_stuck := stuck_stubs.c
OF_unswept := unswept_stubs.c
OF_host := plugin_interface.ml team.ml
OF_loader := plugin_interface.ml

# See the Makefile.
DEBUGGING := -g
$(OUT)/moments: DEBUGGING :=

# Each program has its own directory for object files.
COMPILE = rm -rf $@.dir && mkdir -p $@.dir && cp programs/*.* $@.dir && cp programs5/* $@.dir && cd $@.dir && \
	$(1) $(DEBUGGING) -w -a $(INCLUDES) $(foreach library,unix threads dynlink,$(library).$(2)) \
	check_stubs.c check.ml $(notdir $(wildcard programs/$(3)_stubs.c)) $(OF_$(3)) $(3).ml -o $@

$(OUT)/kept_at_exit.so: tests/kept_at_exit.c programs5/at_rest.h
	mkdir -p $(OUT) && $(CC) -Wall -Wextra -O2 -shared -fPIC $< -o $@

$(OUT)/plugin.cmxs: $(SOURCES)
	rm -rf $@.dir && mkdir -p $@.dir && cp programs/plugin*.ml $@.dir && cd $@.dir && \
	$(OCAMLOPT) -g -c plugin_interface.ml && $(OCAMLOPT) -g -shared plugin.ml -o $@

$(OUT)/%.cmo: $(SOURCES)
	rm -rf $@.dir && mkdir -p $@.dir && cp programs/plugin*.ml programs/loaded.ml $@.dir && cd $@.dir && \
	$(OCAMLC) -g -c plugin_interface.ml && $(OCAMLC) -g -c $*.ml -o $@

$(OUT)/plugins.cma: $(OUT)/plugin.cmo $(OUT)/loaded.cmo
	$(OCAMLC) -a -g $^ -o $@

$(OUT)/%.byte: $(SOURCES)
	$(call COMPILE,$(OCAMLC) -custom,cma,$*)

$(OUT)/%.debug: $(SOURCES)
	$(call COMPILE,$(OCAMLOPT) -runtime-variant d,cmxa,$*)

$(OUT)/%: $(SOURCES)
	$(call COMPILE,$(OCAMLOPT),cmxa,$*)
