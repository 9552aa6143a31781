# Everything here needs only python3 (3.11 or newer) and make; scripts/setup makes .venv.
# People, this file and .ci/run call the same scripts.

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test test-system lint format clean

# The environment is made again only when what it holds may have changed.
ready := .venv/.ready

$(ready): pyproject.toml scripts/setup
	scripts/setup

help: ## list these targets
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: $(ready) ## make .venv with iterant and everything its tests need

demo: $(ready) ## train a maze solver on 9x9 in a minute or two, then solve 59x59 with it
	scripts/demo

test: $(ready) ## lint, types and tests: what must pass before a commit
	scripts/check
	scripts/test

test-system: $(ready) ## tests that need more than Python; installs what they need
	scripts/test-system

docs: $(ready) ## build the documentation into build/docs
	scripts/docs

lint: $(ready) ## lint, format and types only
	scripts/check

format: $(ready) ## rewrite the sources in the one format
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

clean: ## remove .venv and every cache
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find iterant tests -name __pycache__ -type d -prune -exec rm -rf {} +
