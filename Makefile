# Every chore, from a bare clone: `make` alone lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --quiet --quiet --disable-pip-version-check

C_FILES := $(shell find $(wildcard twinedge export firmware_ref) \
	-name build -prune -o -name '*.[ch]' -print)

# What goes in: `demo` is what a user needs, `dev` is that and the tools to test and lint.
EXTRAS_demo := export,tflite,report
EXTRAS_dev  := dev
DEBIAN_demo  = $(shell $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv)
DEBIAN_dev   = $(DEBIAN_demo) $(if $(C_FILES),clang-format cppcheck)

# The tests of one file share the models they fit, so a file stays in one process (loadfile).
# Each process holds a TensorFlow of about 1 GB: more of them is a choice, not the default.
TEST_JOBS ?= 2
PYTEST    := $(BIN)/pytest --numprocesses $(TEST_JOBS) --dist loadfile

CPPCHECK  := cppcheck --quiet --error-exitcode=1 --std=c99 --inline-suppr \
	--enable=warning,style,performance,portability -I firmware_ref/include

.PHONY: help demo test test-all lint format bench clean debian-demo debian-dev
.NOTPARALLEL: # one pip at a time in .venv, and lint before the tests

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp ## Train the built-in test function and predict with it
	@echo '$$ twinedge train --dataset tf --effort quick -o runs/demo'
	@$(BIN)/twinedge train --dataset tf --effort quick -o runs/demo
	@printf 'x1,x2\n0.5,0.5\n-0.2,0.9\n' > runs/new.csv
	@echo; echo '$$ twinedge predict runs/demo runs/new.csv'
	@$(BIN)/twinedge predict runs/demo runs/new.csv

test: lint ## Lint, then run the quick tests (ARGS="-k anchors" picks some)
	@$(PYTEST) -m 'not slow' $(ARGS)

test-all: lint ## Lint, then run all tests, also those that train for minutes
	@$(PYTEST) $(ARGS)

lint: $(VENV)/dev.stamp ## Check style and types; change nothing
	@echo 'Checking style and types ...'
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary
ifdef C_FILES
	@clang-format --dry-run -Werror $(C_FILES)
	@$(CPPCHECK) $(C_FILES)
endif

format: $(VENV)/dev.stamp ## Put the code into shape
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet
ifdef C_FILES
	@clang-format -i $(C_FILES)
endif

bench: $(VENV)/dev.stamp ## Time the training
	@$(BIN)/python benchmarks/train_speed.py
	@echo 'The accuracy tables take hours: $(BIN)/python benchmarks/accuracy.py'

clean: ## Remove .venv, builds and caches; keep runs/
	@rm -rf $(VENV) build dist *.egg-info export/*.egg-info
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	@find . -name __pycache__ -prune -exec rm -rf {} +

# A stamp says that .venv is whole. It goes before pip starts and comes back when pip is done, so
# an interrupted install leaves none, and without one .venv is made afresh.
$(VENV)/demo.stamp $(VENV)/dev.stamp: $(VENV)/%.stamp: pyproject.toml constraints.txt | debian-%
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit( \
		"twinedge needs Python 3.10 or later: name one with make PYTHON=...")'
	@echo 'Installing into $(VENV) (minutes the first time: TensorFlow is large) ...'
	@ls $(VENV)/*.stamp >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@rm -f $(VENV)/*.stamp
	@$(PIP) install 'pip>=23'
	@$(PIP) install -c constraints.txt -e '.[$(EXTRAS_$*)]'
	@touch $(VENV)/demo.stamp $@

debian-demo debian-dev: debian-%:
	@tools/need-debian $(DEBIAN_$*)
