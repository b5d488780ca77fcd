# All chores, from a bare clone: `make` alone lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --quiet --quiet --disable-pip-version-check

C_FILES := $(shell find $(wildcard twinedge export firmware_ref) \
	-name build -prune -o -name '*.[ch]' -print -o -name '*.cpp' -print)

# What gets installed: `demo` is what a user needs, `check` adds the Python tools to test and lint, and
# `dev` compilers for other machines, and emulators, so that firmware runs here as it does there.
EXTRAS_demo := export,tflite,report
EXTRAS_dev  := export,tflite,report,sign,tables,cluster,mqtt
EXTRAS_check := $(EXTRAS_dev)
GROUPS_dev  := --group dev
GROUPS_check := $(GROUPS_dev)
DEBIAN_demo  = $(shell $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv) \
	$(shell $(PYTHON) -c 'import os, sysconfig; \
		exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || echo python3-dev) \
	gcc libc6-dev
DEBIAN_check = $(DEBIAN_demo)
DEBIAN_dev   = $(DEBIAN_demo) g++ ccache cmake clang clang-format clang-tidy cppcheck libclang-rt-14-dev lld \
	libsimde-dev tcc fish zsh mosquitto openssl \
	gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm \
	gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc \
	gcc-xtensa-lx106 picolibc-xtensa-lx106-elf \
	gcc-avr avr-libc simavr libsimavr-dev libelf-dev arduino-builder arduino-core-avr chromium \
	qemu-user gcc-arm-linux-gnueabihf libc6-dev-armhf-cross $(DEBIAN_prove) $(DEBIAN_$(shell uname -m))
DEBIAN_prove := frama-c-base why3 z3 cvc4
DEBIAN_aarch64 := gcc-x86-64-linux-gnu libc6-dev-amd64-cross
DEBIAN_x86_64  := gcc-aarch64-linux-gnu libc6-dev-arm64-cross

# The tests of one file share the models they fit, so a file stays in one process (loadfile).
# Files start in the order of tests/conftest.py, not by their number of tests.
# Each process holds a TensorFlow of about 1 GB: more processes are opt-in.
TEST_JOBS ?= 2
# Tests compile the same files again and again: where ccache is installed, it does so once,
# whatever folder debuggers would find them in.
CACHED    := PATH=/usr/lib/ccache:$$PATH CCACHE_DIR=$(CURDIR)/build/ccache CCACHE_NOHASHDIR=1
# With a process on each core, more BLAS threads would only wait for each other.
PYTEST    := OPENBLAS_NUM_THREADS=1 $(CACHED) $(BIN)/pytest --numprocesses $(TEST_JOBS) --dist loadfile --no-loadscope-reorder

# The model that tests measure boards with: 8 features, 128-128, int8, 32 anchors.
BOARDS    := $(BIN)/twinedge firmware sizes

CPPCHECK  := cppcheck -j 2 --quiet --force --error-exitcode=1 --std=c99 --inline-suppr \
	--enable=warning,style,performance,portability -I firmware_ref/include -I firmware_ref/src

# Strictly typed: the packages, what benchmarks share, and what computes the paper's tables; for the
# highest version of Python, and the packages for the lowest, for which numpy no longer states its types.
MYPY      := $(BIN)/mypy --no-error-summary
TYPES     := $(MYPY) && $(MYPY) --python-version 3.10 --no-warn-return-any --no-warn-unused-ignores && $(MYPY) -p benchmarks.harness -p benchmarks.reproduction

.PHONY: help demo amalgamation dist version site figures notebooks plots wasm report-shots check test test-all test-pi lint format coverage fuzz prove bench clean \
	debian-demo debian-check debian-dev
.NOTPARALLEL: # one pip at a time in .venv, and lint before the tests

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp ## Train the built-in test function, export it, run it, and see its cost
	@$(call say,twinedge train --dataset tf --effort quick -o runs/demo)
	@$(call say,twinedge export runs/demo --anchors 32 -o runs/demo-export)
	@printf 'x1,x2\n0.5,0.5\n-0.2,0.9\n' > runs/new.csv
	@$(call say,twinedge predict runs/demo-export/model.twin runs/new.csv)
	@$(call say,twinedge budget runs/demo-export/model.twin)

# Shows a command as a user would type it, and runs it.
say = echo; echo '$$ $(1)'; $(BIN)/$(1)

amalgamation: OUT = build/amalgamation
amalgamation: ## The C runtime as one twin.c and one twin.h, in OUT (build/amalgamation)
	@PYTHONPATH=.:export $(PYTHON) -m twinedge_export.amalgamation $(OUT)

dist: $(VENV)/dev.stamp ## Everything a release publishes, from the last commit, in dist/
	@$(BIN)/python tools/dist.py

version: $(VENV)/dev.stamp ## Copy the version of twinedge/version.py into all manifests
	@$(BIN)/python tools/dist.py --stamp

wasm: ## The C runtime for report pages, kept in the repository; a test compares
	@tools/need-debian clang lld
	@$(MAKE) --no-print-directory -C firmware_ref wasm
	@install -m 644 firmware_ref/build/twin.wasm export/twinedge_export/report/templates/

site: $(VENV)/check.stamp ## The pages of docs/ and the reference as a site, in build/site
	@$(BIN)/python tools/site.py build/site

figures: $(VENV)/check.stamp ## Train a small twin, and draw the figures of docs/how-it-works.md
	@$(BIN)/python docs/generate/figures.py

notebooks: $(VENV)/dev.stamp ## Run the notebooks of docs/notebooks, and keep what they show
	@cd docs && $(abspath $(BIN))/python -m generate.notebooks

plots: $(VENV)/check.stamp ## Draw the plots of the pages of evidence from benchmarks/results
	@cd docs && $(abspath $(BIN))/python -m generate.evidence

report-shots: $(VENV)/dev.stamp ## Pictures of a report at four widths, light and dark, in build/shots
	@mkdir -p build/shots runs
	@test -d runs/demo || $(BIN)/twinedge train --dataset tf --effort quick -o runs/demo
	@$(BIN)/twinedge report runs/demo --quick -o build/shots/report.html
	@$(BIN)/python tools/report-shots build/shots/report.html build/shots

# Checks accessibility of pages; only the report tests need it.
AXE := build/axe/node_modules/axe-core/axe.min.js
$(AXE):
	@command -v npm >/dev/null || tools/need-debian npm
	@npm install --loglevel=error --no-save --no-audit --no-fund --prefix build/axe axe-core@4.10.3

# Checks configurations of the component for ESPHome; only its tests need it.
ESPHOME := build/esphome/versions.txt
$(ESPHOME): constraints-esphome.txt tools/esphome-env | $(VENV)/dev.stamp
	@echo 'Installing ESPHome into build/esphome ...'
	@PYTHON=$(BIN)/python tools/esphome-env build/esphome >/dev/null
	@touch $@

# Verifies signatures in the examples; only tests of boards need it.
MONOCYPHER := build/monocypher/monocypher-ed25519.h
$(MONOCYPHER): tools/monocypher
	@$(PYTHON) tools/monocypher $(@D)
	@touch $@

# No emulators, no browser, no Debian package beyond a C compiler.
CORE := tests/anchors tests/budget tests/data tests/encoding tests/evaluation tests/pack tests/scoring tests/test_*.py \
	tests/runtime/test_reference.py tests/runtime/test_native.py tests/runtime/test_journal.py \
	tests/estimators/test_anchored.py tests/training/test_batches.py tests/export/test_quantise.py
check: $(VENV)/check.stamp ## What to run every few minutes: style, types and the core tests, in two minutes
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(TYPES)
	@$(PYTEST) -q -m 'not slow' $(CORE) $(ARGS)

test: lint $(AXE) $(ESPHOME) $(MONOCYPHER) ## Lint, then run the quick tests (ARGS="-k anchors" picks some)
	@$(PYTEST) -m 'not slow' $(ARGS)
	@$(BOARDS)

test-all: lint $(AXE) $(ESPHOME) $(MONOCYPHER) ## Lint, then run all tests, including those that train for minutes
	@$(PYTEST) $(ARGS)
	@$(BOARDS)

test-pi: $(VENV)/dev.stamp ## Test the runtime on Raspberry Pi userlands, 64 and 32 bits; needs root
	@$(BIN)/pytest -s tests/pi $(ARGS)

lint: $(VENV)/dev.stamp ## Check style and types; change nothing
	@echo 'Checking style and types ...'
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
ifdef C_FILES
	@clang-format --dry-run -Werror $(C_FILES)
	@$(CPPCHECK) $(filter %.c,$(C_FILES)) & c=$$!; { $(TYPES); }; types=$$?; wait $$c && exit $$types
	@$(BIN)/python tools/rules.py
else
	@$(TYPES)
endif

format: $(VENV)/dev.stamp ## Format the code
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet
ifdef C_FILES
	@clang-format -i $(C_FILES)
endif

coverage: $(VENV)/dev.stamp $(AXE) $(ESPHOME) $(MONOCYPHER) ## Lines and branches that the quick tests reach, in C and in Python
	@$(MAKE) --no-print-directory -C firmware_ref coverage PYTHON=$(CURDIR)/$(BIN)/python
	@$(PYTEST) -m 'not slow' --cov --cov-report=html:build/coverage --cov-report=json:build/coverage.json $(ARGS)
	@$(BIN)/python tools/coverage build/coverage.json --lines 98 --branches 96

fuzz: $(VENV)/dev.stamp ## Fuzz the C runtime for FUZZ_SECONDS (60)
	@$(MAKE) --no-print-directory -j 2 -C firmware_ref fuzz

prove: ## Show that the C runtime has no run-time errors, by Frama-C (docs/security.md)
	@tools/need-debian gcc $(DEBIAN_prove)
	@$(MAKE) --no-print-directory -C firmware_ref prove PYTHON=$(PYTHON)

bench: $(VENV)/dev.stamp ## Compute again what a change of the training made void (ARGS=--list: what, and how long)
	@$(BIN)/python -m benchmarks $(ARGS)

clean: ## Remove .venv, builds and caches; keep runs/
	@rm -rf $(VENV) build dist dist.new *.egg-info export/*.egg-info firmware_ref/build twinedge/runtime/*.so
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	@find . -name __pycache__ -prune -exec rm -rf {} +

# The Python extension is compiled when the package is installed.
NATIVE := $(wildcard setup.py twinedge/runtime/*.c firmware_ref/include/*.h firmware_ref/src/*.[ch] \
	firmware_ref/src/kernels/*.[ch])

# A stamp says that .venv is complete. It is removed before pip starts and written when pip is done,
# so an interrupted install leaves none, and without one .venv is recreated.
$(VENV)/demo.stamp $(VENV)/check.stamp $(VENV)/dev.stamp: $(VENV)/%.stamp: pyproject.toml constraints.txt $(NATIVE) \
		| debian-%
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit( \
		"twinedge needs Python 3.10 or later: name one with make PYTHON=...")'
	@echo 'Installing into $(VENV) (minutes the first time: TensorFlow is large) ...'
	@ls $(VENV)/*.stamp >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@rm -f $(VENV)/*.stamp
	@$(PIP) install 'pip>=25.1' # which knows groups
	@$(CACHED) $(PIP) install --no-compile -c constraints.txt -e '.[$(EXTRAS_$*)]' $(GROUPS_$*)
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # pip would use one core; some files are for other versions
	@touch $(VENV)/demo.stamp $(if $(filter dev,$*),$(VENV)/check.stamp) $@

debian-demo debian-check debian-dev: debian-%:
	@tools/need-debian $(DEBIAN_$*)
