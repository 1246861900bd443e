# The commands of this project. `make help` lists them; the README says what they need and how long they take.
SHELL := /bin/bash
PYTHON ?= python3
STACK ?= local
FAULT ?=
py := .venv/bin/python
pytest := .venv/bin/pytest

.PHONY: help setup tools rehearse down env test bench check lock schema wheel clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: ## the Python environment, from the lock file
	@PYTHON=$(PYTHON) tools/bootstrap.sh

tools: setup ## the pinned tools, built once into a cache
	@$(py) -m tools build

rehearse: tools ## `pulumi up` of STACK=local on a simulated cloud; FAULT=name switches a fault on
	@$(py) -m twin rehearse --stack '$(STACK)' $(if $(FAULT),--fault '$(FAULT)')

down: setup ## take the rehearsal away
	@$(py) -m twin down

env: ## exports for a shell: eval "$$(make -s env)"
	@$(MAKE) -s tools >&2 && $(py) -m twin env

test: check tools ## everything: checks, pure tests, then those with a control plane and the real engine
	@$(pytest) -m 'not control_plane and not engine'
	@$(pytest) -m 'control_plane and not engine'
	@$(pytest) -m engine

bench: tools ## speed, as ratios measured in one run
	@$(py) -m bench.localise
	@$(py) -m bench.preview

check: setup ## format, lint, types
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy

lock: setup ## lock the dependencies anew, in a form that names no index
	@.plumbline/uv/bin/uv pip compile pyproject.toml --extra aws --extra gcp --group dev --generate-hashes \
	  --python-version 3.11 --universal --no-header --quiet --output-file requirements/dev.txt

schema: setup ## the JSON Schema of the declaration, for editors
	@$(py) -m plumbline.site.schema > stacks/site.schema.json

wheel: setup ## the installable package, in dist/
	@.plumbline/uv/bin/uv build --wheel --quiet --no-build-isolation --python $(py)

clean: ## remove what was built in this checkout; the cache of tools stays
	@rm -rf .venv .plumbline dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
