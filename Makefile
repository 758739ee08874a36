# SPDX-License-Identifier: Apache-2.0
# Thin names over CMake, CTest and the tide command. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help run test t check build build-release build-asan build-tsan firmware sizes bench measurements docs papers wheel packages fuzz \
        interruptions sanitized-agent clean \
        test-release test-asan test-tsan test-python test-firmware test-quiet test-check test-rclcpp
SHELL := /bin/bash
stage = scripts/stage.sh
# What a stage needs first; nothing where the caller has seen to it.
needs = $(if $(BUILT),,$(1))

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24
	@echo "The stages of make test, each also alone:"
	@grep -hE '^[a-z%-]+:.*#:' $(MAKEFILE_LIST) | sed -E 's/^([a-z%-]+):.*#: /  make \1\t/' | expand -t 24

run: build ## install what is missing, build, and run the main job: three chains, batch against TIDE
	.venv/bin/tide run examples/three_chains/system.toml --out results/three_chains

test: ## install what is missing, build, and pass all tests (with the checks of `make check`)
	@scripts/stage.sh begin
	@$(stage) setup "what is missing" scripts/setup.sh test
	@$(stage) build-release "optimised build with tests in build/release" scripts/build.sh release
	@MAKE=$(MAKE) scripts/beside.sh test-release test-python test-firmware:firmware test-asan:build-asan \
	  test-tsan:build-tsan test-quiet test-rclcpp -- firmware test-check build-asan build-tsan
	@scripts/stage.sh table
	@echo "all tests passed"

t: ## build and run one test: T=queue_heap_test[:FILTER] or T=test_check[:KEYWORD]; P=asan or tsan
	@scripts/one_test.sh "$(T)" $(P)

build: ## install what is missing and build the programs in build/release/bin
	@scripts/setup.sh run
	@$(stage) $@ "optimised build of the programs in build/release" scripts/build.sh release programs

build-release:
	@scripts/setup.sh test
	@$(stage) $@ "optimised build with tests in build/release" scripts/build.sh release

build-asan build-tsan: build-%:
	@$(stage) $@ "$* build in build/$*" scripts/build.sh $* tests

test-check: $(call needs,build-release) #: clang-format, clang-tidy, ruff, mypy
	@$(stage) $@ "clang-format clang-tidy ruff mypy" scripts/check.sh

test-release: $(call needs,build-release) #: C and C++ tests, optimised
	@$(stage) $@ "unit and property tests" scripts/ctest.sh release

test-asan: $(call needs,build-asan) #: the same under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(stage) $@ "unit and property tests under sanitizers: asan" scripts/ctest.sh asan

test-tsan: $(call needs,build-tsan) #: those with threads under ThreadSanitizer
	@$(stage) $@ "unit and property tests under sanitizers: tsan" scripts/ctest.sh tsan

test-firmware: $(call needs,firmware) #: Cortex-M images in QEMU against the agent and ROS 2, and their sizes
	@$(stage) $@ "Cortex-M images in QEMU against the agent and ROS 2" scripts/pytest.sh firmware 2
	@.venv/bin/python lab/bench/sizes.py --check 2

test-python: $(call needs,build-release) #: the command, the ROS 2 executors and the real parts
	@$(stage) $@ "the command and the real parts: line and agent and ROS 2" scripts/pytest.sh python 2

test-quiet: $(call needs,build-release) #: those of the same that compare rates and times
	@$(stage) $@ "rates and times of the real parts" scripts/pytest.sh quiet

test-rclcpp: #: the executor for rclcpp, where the environment has an rclcpp
	@$(stage) $@ "the executor for rclcpp" scripts/rclcpp.sh

firmware: ## build Cortex-M7 and M4F libraries and images
	@scripts/setup.sh firmware
	@for core in cortex-m7 cortex-m4f; do $(stage) $$core "$$core build" scripts/build.sh $$core || exit 1; done

sizes: firmware ## print flash, RAM and stack of the Cortex-M builds, against the last recorded ones
	@.venv/bin/python lab/bench/sizes.py
	@.venv/bin/python lab/bench/stack.py multi_lane
	@.venv/bin/python lab/bench/stack.py three_chains

check: build-release ## check formatting, static analysis and types: everything
	@scripts/check.sh all

sanitized-agent: build-release ## test the agent with the real DDS beside ROS 2, under AddressSanitizer
	@scripts/sanitized_agent.sh

interruptions: build-release ## interrupt commands and tide_ros programs at random moments, TIMES each (default 100)
	@.venv/bin/python tools/tests/interruptions.py --times $${TIMES:-100}

bench: ## measure ratios against a baseline in the same run
	@scripts/setup.sh bench
	@$(MAKE) --no-print-directory build-release
	@scripts/bench.sh

measurements: ## make the tables of docs/measurements.md from what lab/results/ keeps
	@.venv/bin/python lab/bench/measurements.py

wheel: build ## make dist/tide-*.whl, the command with its native programs, for this Python
	@TIDE_WHEEL_BUILD=build/release .venv/bin/python -m pip wheel . --no-deps --no-build-isolation -q -w dist
	@ls dist/*.whl

packages: wheel ## make dist/: the wheel, and packages for Arduino, ESP-IDF, Zephyr, STM32Cube, Pico and NuttX
	@.venv/bin/python scripts/packages.py

docs: ## build the guide into build/site; nothing of it needs a network to be read
	@scripts/setup.sh run
	@.venv/bin/python scripts/guide/build.py

papers: ## make docs/papers.md: what the papers say, and what holds here
	@.venv/bin/python lab/bench/papers.py

fuzz: ## fuzz with coverage, FUZZ_SECONDS each target (default 300)
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $${FUZZ_SECONDS:-300}

clean: ## remove all builds (not the Python environment)
	rm -rf build results
