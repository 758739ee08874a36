# SPDX-License-Identifier: Apache-2.0
# Thin names over CMake, CTest and the tide command. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help run test check build build-release build-asan build-tsan firmware sizes bench fuzz soak clean \
        test-release test-asan test-tsan test-python test-firmware test-check
SHELL := /bin/bash
JOBS ?= $(shell nproc)
say = @printf '\033[1m[%s]\033[0m %s\n' "$@" "$(1)"

help: ## what each name does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

run: build ## install what is missing, build, and run the main job: three chains, batch against TIDE
	.venv/bin/tide run examples/three_chains/system.toml --out results/three_chains

test: ## install what is missing, build, and pass all tests (with the checks of `make check`)
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory test-check test-release test-asan test-tsan test-firmware test-python
	@echo "all tests passed"

build:
	@scripts/setup.sh run
	$(call say,optimised build of the programs in build/release)
	@scripts/build.sh release programs

build-release:
	@scripts/setup.sh test
	$(call say,optimised build with tests in build/release)
	@scripts/build.sh release

build-asan build-tsan: build-%:
	$(call say,$* build in build/$*)
	@scripts/build.sh $* tests

test-release: build-release
	$(call say,unit and property tests)
	@scripts/ctest.sh release

test-asan test-tsan: test-%: build-%
	$(call say,unit and property tests under sanitizers: $*)
	@scripts/ctest.sh $*

test-python: build-release
	$(call say,the command and the real parts: line and agent and ROS 2)
	@scripts/pytest.sh tests/python

test-firmware: firmware
	$(call say,Cortex-M images in QEMU against the agent and ROS 2)
	@scripts/pytest.sh tests/firmware
	@.venv/bin/python bench/sizes.py --check 2

firmware: ## Cortex-M7 and M4F libraries and images
	@scripts/setup.sh firmware
	$(call say,Cortex-M7 and M4F builds)
	@scripts/build.sh cortex-m7
	@scripts/build.sh cortex-m4f

sizes: firmware ## flash, RAM and stack of the Cortex-M builds, against the last recorded ones
	@.venv/bin/python bench/sizes.py
	@.venv/bin/python bench/stack.py multi_lane
	@.venv/bin/python bench/stack.py three_chains

check: build-release ## formatting, static analysis, types: everything
	@scripts/check.sh all

test-check: build-release
	$(call say,clang-format clang-tidy ruff mypy)
	@scripts/check.sh

bench: ## measured ratios against a baseline in the same run
	@scripts/setup.sh bench
	@$(MAKE) --no-print-directory build-release
	@scripts/bench.sh

fuzz: ## coverage-guided fuzzing, FUZZ_SECONDS each target (default 300)
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $${FUZZ_SECONDS:-300}

clean: ## remove all builds (not the Python environment)
	rm -rf build results
