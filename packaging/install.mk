# Installing, and building packages. Included by the Makefile.
#
#   make install install-debug PREFIX=/usr/local DESTDIR=/tmp/image
#
# packaging/stage lists all files and the further directories that can be set. `install-built` and
# `install-debug` install what `make build` has built, so that only they need to run as root.

PREFIX ?= /usr/local
DESTDIR ?=
# Where the OCaml library for labels is built, if there is a compiler; empty to leave it out.
LABELS ?= $(addprefix $(TARGET_DIR)/labels-,$(shell command -v ocamlopt >/dev/null && ocamlopt -version))

INSTALL := PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' RELEASE='$(RELEASE)' \
	$(foreach name,LIBDIR OCAMLDIR DOCDIR ZSHDIR DEBUGDIR,$(if $($(name)),$(name)='$($(name))')) \
	LABELS='$(abspath $(LABELS))' packaging/install

.PHONY: install install-built install-debug
install: build install-built

install-built:
	$(INSTALL) install files

# Debug information of the program and the library, which are installed without it.
install-debug:
	DEBUG=yes $(INSTALL) install debug-files

.PHONY: uninstall
uninstall:
	@lists='$(notdir $(wildcard $(DESTDIR)$(PREFIX)/share/heaptap/*files))'; \
	for list in $${lists:-files}; do $(INSTALL) uninstall $$list; done

.PHONY: deb
deb: build
	packaging/deb '$(RELEASE)' '$(TARGET_DIR)'

# Installs into throw-away directories, compiles, links and runs against what is there.
.PHONY: install-tests
install-tests:
	packaging/test '$(RELEASE)'
