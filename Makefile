# SPDX-License-Identifier: Apache-2.0
#
# The commands a person types. meson and ninja do the work; this file knows no source file.
#
#   make            build into build/bin/
#   make test       every test; the last line says how many passed
#   make demo       a real 4-rank PyTorch job, broken twice, brought to its end
#   make cluster    a real Slurm of 16 nodes with Reknit, on this machine, as root, until Ctrl-C
#   make bench      speed, memory and delays beside their budgets, as one table
#   make soak       the kill tests, ten times as many, and each fuzzer for two minutes
#   make coverage   line coverage; fails when that of src/core is below 95 %
#   make format     clang-format over all sources
#   make install    into $(DESTDIR)$(PREFIX); without PREFIX, to where 'make' built it for
#   make deb        build/reknit_VERSION_ARCH.deb, for apt install
#   make clean      remove every build folder
#
# Packages that are missing are installed first (tools/packages); DEPS=no leaves that out.

PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
MESON ?= meson
DEPS ?= yes

.PHONY: all build test demo cluster bench soak coverage format install deb clean deps-%
all: build

deps-%:
	@[ "$(DEPS)" = no ] || tools/install-deps $(subst +, ,$*)

build: deps-build
	@tools/build build -Dprefix=$(abspath $(PREFIX))

test: deps-build+test+demo+cluster+deb
	@tools/run-tests -j $(JOBS)

demo: deps-build+demo
	@tools/build build -Dprefix=$(abspath $(PREFIX))
	@demo/run

cluster: deps-build+cluster
	@tools/build build -Dprefix=$(abspath $(PREFIX))
	@PYTHONPATH=tests/system PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m cluster 16 build/bin

bench: deps-build+bench
	@tools/build build -Dprefix=$(abspath $(PREFIX))
	@bench/run

soak: deps-build+test+demo+cluster
	@tools/build build -Dprefix=$(abspath $(PREFIX))
	@REKNIT_TEST_KILLS=300 /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/system -m soak
	@tools/run-tests -j $(JOBS) --fuzz-seconds 120 clang

coverage: deps-build+test+coverage
	@tools/build build-coverage -Db_coverage=true -Dbuildtype=debug
	@$(MESON) test -C build-coverage --no-rebuild --quiet --suite unit --suite replay
	@REKNIT=build-coverage/bin/reknit /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/system/test_vignettes.py
	@gcovr --root . --filter src/ --print-summary build-coverage
	@echo "src/core alone, which must reach 95 %:"
	@gcovr --root . --filter src/core/ --fail-under-line 95 --print-summary --output build-coverage/core.txt build-coverage

format: deps-test
	@git ls-files 'src/*.[ch]' 'tests/*.[ch]' | xargs clang-format-14 -i

# It only copies, so that root leaves nothing compiled behind in a user's folder.
install:
	@test -x build/bin/reknit || { echo "run 'make' first" >&2; exit 1; }
	@DESTDIR=$(abspath $(DESTDIR)) MESON="$(MESON)" tools/install build $(if $(filter file,$(origin PREFIX)),,$(abspath $(PREFIX)))

# It holds what 'make' built, and is for /usr whatever the prefix of that was.
deb: build deps-deb
	@tools/deb build

clean:
	rm -rf build build-*
