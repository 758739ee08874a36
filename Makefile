# SPDX-License-Identifier: Apache-2.0
# Thin names over CMake, CTest and the tide command. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help run test check build build-release build-asan build-tsan firmware sizes bench fuzz soak sanitized-agent interruptions clean \
        test-release test-asan test-tsan test-python test-firmware test-check
SHELL := /bin/bash
stage = scripts/stage.sh

help: ## what each name does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

run: build ## install what is missing, build, and run the main job: three chains, batch against TIDE
	.venv/bin/tide run examples/three_chains/system.toml --out results/three_chains

test: ## install what is missing, build, and pass all tests (with the checks of `make check`)
	@scripts/stage.sh begin
	@$(stage) setup "what is missing" scripts/setup.sh test
	@$(MAKE) --no-print-directory test-check test-release test-asan test-tsan test-firmware test-python
	@scripts/stage.sh table
	@echo "all tests passed"

build:
	@scripts/setup.sh run
	@$(stage) $@ "optimised build of the programs in build/release" scripts/build.sh release programs

build-release:
	@scripts/setup.sh test
	@$(stage) $@ "optimised build with tests in build/release" scripts/build.sh release

build-asan build-tsan: build-%:
	@$(stage) $@ "$* build in build/$*" scripts/build.sh $* tests

test-release: build-release
	@$(stage) $@ "unit and property tests" scripts/ctest.sh release

test-asan test-tsan: test-%: build-%
	@$(stage) $@ "unit and property tests under sanitizers: $*" scripts/ctest.sh $*

test-python: build-release
	@$(stage) $@ "the command and the real parts: line and agent and ROS 2" scripts/pytest.sh tests/python 2

test-firmware: firmware
	@$(stage) $@ "Cortex-M images in QEMU against the agent and ROS 2" scripts/pytest.sh tests/firmware 2
	@.venv/bin/python bench/sizes.py --check 2

firmware: ## Cortex-M7 and M4F libraries and images
	@scripts/setup.sh firmware
	@for core in cortex-m7 cortex-m4f; do $(stage) $$core "$$core build" scripts/build.sh $$core || exit 1; done

sizes: firmware ## flash, RAM and stack of the Cortex-M builds, against the last recorded ones
	@.venv/bin/python bench/sizes.py
	@.venv/bin/python bench/stack.py multi_lane
	@.venv/bin/python bench/stack.py three_chains

check: build-release ## formatting, static analysis, types: everything
	@scripts/check.sh all

test-check: build-release
	@$(stage) $@ "clang-format clang-tidy ruff mypy" scripts/check.sh

sanitized-agent: build-release ## the agent with the real DDS beside ROS 2, under AddressSanitizer
	@scripts/sanitized_agent.sh

interruptions: build-release ## commands and tide_ros programs interrupted at random moments, TIMES each (default 100)
	@.venv/bin/python tests/python/interruptions.py --times $${TIMES:-100}

bench: ## measured ratios against a baseline in the same run
	@scripts/setup.sh bench
	@$(MAKE) --no-print-directory build-release
	@scripts/bench.sh

fuzz: ## coverage-guided fuzzing, FUZZ_SECONDS each target (default 300)
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $${FUZZ_SECONDS:-300}

clean: ## remove all builds (not the Python environment)
	rm -rf build results
