# SPDX-License-Identifier: Apache-2.0
# Thin names over CMake, CTest and the tide command. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: lines help run test test-all t check build firmware sizes bench docs wheel packages release fuzz \
        clean gate-stages all-stages setup-gate setup-all build-asan build-release build-tsan build-gate-images build-images \
        test-unit test-python test-real test-firmware test-check test-release test-tsan test-full test-firmware-full test-analyzer \
        test-campaigns test-lab test-rclcpp
SHELL := /bin/bash
stage = scripts/stage.sh
# The campaigns in make test-all use other seeds each day. A failure prints the seed that replays it.
FIRST_SEED ?= $(shell date +%y%j)0000
LAST_SEED ?= $(shell date +%y%j)9999
# Stages run two at a time: the tests wait more than they compute.
beside = $(MAKE) --no-print-directory -j $(or $(STAGES),2)

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24
	@echo "The stages of make test (and of make test-all), each also alone:"
	@grep -hE '^[a-z-]+:.*#:' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*#: /  make \1\t/' | expand -t 24

run: build ## install what is missing, build, and run the main job: three chains, batch against TIDE
	.venv/bin/tide run examples/three_chains/system.toml --executor all --out results/three_chains || case $$? in 1|3|4|5) ;; *) exit 1 ;; esac  # a verdict is no error

test: ## install what is missing, build, and pass the gate (docs/internals/testing.md: what it covers and what not)
	@$(stage) begin
	@$(beside) gate-stages || { $(stage) table; exit 1; }
	@$(MAKE) --no-print-directory lines || true  # a copy without its history has nothing to compare with
	@$(stage) table

test-all: ## everything that make test leaves out, too; again after an interruption it goes on where it was
	@RESUME=yes $(stage) begin
	@RESUME=yes $(beside) -k all-stages || { $(stage) table; exit 1; }
	@$(stage) table

# The order in which stages begin, as soon as what they need is there.
gate-stages: test-unit test-python test-real test-check test-firmware
all-stages: gate-stages test-release test-full test-firmware-full test-analyzer test-tsan test-campaigns test-lab test-rclcpp

t: ## build and run one test: T=queue_heap_test[:FILTER] or T=test_check[:KEYWORD]; P=asan, release or tsan
	@scripts/one_test.sh "$(T)" $(P)

build: ## install what is missing and build the programs in build/release/bin
	@scripts/setup.sh run
	@scripts/build.sh release programs

setup-gate:
	@$(stage) $@ "what is missing of what the gate needs" scripts/setup.sh gate

setup-all: setup-gate
	@$(stage) $@ "what is missing of what all tests need" scripts/setup.sh all

build-asan: setup-gate #: programs and tests with AddressSanitizer and UndefinedBehaviorSanitizer, in build/asan
	@$(stage) $@ "programs and tests with sanitizers, in build/asan" scripts/build.sh asan programs gate_tests

build-gate-images: setup-gate #: the five STM32F405 images of the gate, in build/cortex-m4f
	@$(stage) $@ "five STM32F405 images, in build/cortex-m4f" scripts/build.sh cortex-m4f gate_images

test-unit: build-asan #: C and C++ tests: the runtime and the agent against models, in virtual time
	@$(stage) $@ "C and C++ tests" scripts/ctest.sh asan gate

test-python: build-asan #: the command, the analysis and the ROS 2 executors
	@$(stage) $@ "the command, the analysis, the ROS 2 executors" scripts/pytest.sh unit 2

test-real: build-asan #: one test for each kind of communication: tty, DDS, rclpy
	@$(stage) $@ "real parts: line, agent, DDS, rclpy" scripts/pytest.sh real 3

test-firmware: build-asan build-gate-images #: five STM32F405 images in QEMU
	@$(stage) $@ "STM32F405 images in QEMU" scripts/pytest.sh firmware 2

test-check: build-asan #: formats, clang-tidy without its analyzer, ruff, mypy, spelling
	@$(stage) $@ "formats, linters, types" scripts/check.sh

build-release: setup-all build-asan #: (all) optimised build with all tests and the laboratory, in build/release
	@$(stage) $@ "optimised build with all tests and the laboratory, in build/release" scripts/build.sh lab

build-tsan: setup-all build-release #: (all) tests with ThreadSanitizer, in build/tsan
	@$(stage) $@ "tests with ThreadSanitizer, in build/tsan" scripts/build.sh tsan tests

build-images: setup-all build-gate-images #: (all) all images, for the MPS2 board (Cortex-M7) and the STM32F405
	@$(stage) $@ "all images for the MPS2 board and the STM32F405" sh -c 'scripts/build.sh cortex-m7 && scripts/build.sh cortex-m4f'

test-release: build-release #: (all) all C and C++ tests, optimised
	@$(stage) $@ "C and C++ tests, optimised" scripts/ctest.sh release

test-tsan: build-tsan #: (all) those with threads under ThreadSanitizer
	@$(stage) $@ "C and C++ tests with threads under ThreadSanitizer" scripts/ctest.sh tsan

test-full: build-release build-gate-images #: (all) Python tests that the gate leaves out: ROS 2, packages
	@$(stage) $@ "Python tests that the gate leaves out" scripts/pytest.sh full 2

test-firmware-full: build-release build-images #: (all) the other images in QEMU, and the sizes of all
	@$(stage) $@ "the other images in QEMU, and the sizes of all" sh -c 'scripts/pytest.sh firmware-full 2 && .venv/bin/python scripts/sizes.py --check 2'

test-analyzer: setup-all build-asan #: (all) clang-tidy with its analyzer, and over C++
	@$(stage) $@ "clang-tidy with its analyzer" scripts/check.sh all

test-campaigns: build-release #: (all) long campaigns of the simulator
	@$(stage) $@ "seeds $(FIRST_SEED)..$(LAST_SEED) of each campaign" sh -c 'for mode in "" overload host \
	  actions; do echo "tide-sim $$mode" && build/release/bin/tide-sim $$mode --seeds $(FIRST_SEED)..$(LAST_SEED) || exit 1; done'

# A dry run would run a line with the variable MAKE, and record its stage as passed.
test-lab: build-release build-images #: (all) the laboratory, a project of its own: its checks and tests
	@$(stage) $@ "the laboratory" env -u MAKEFLAGS make --no-print-directory -C lab tests

test-rclcpp: build-release #: (all) the executor for rclcpp, where the environment has an rclcpp
	@$(stage) $@ "the executor for rclcpp" scripts/rclcpp.sh

firmware: ## build all Cortex-M7 and M4F libraries and images
	@$(MAKE) --no-print-directory build-images

sizes: firmware ## print flash and RAM of the Cortex-M builds, against the last recorded ones
	@.venv/bin/python scripts/sizes.py

lines: ## print lines of code by module, and what grew since the commit SINCE (default: that of the day before)
	@.venv/bin/python scripts/rooms.py --lines $(SINCE)

check: build-asan ## formats, linters, types, as the gate has them (make test-analyzer: clang-tidy with its analyzer, too)
	@scripts/check.sh

bench: ## measure ratios against a baseline in the same run (in the laboratory: make -C lab help)
	@$(MAKE) --no-print-directory -C lab bench

wheel: build ## make dist/tide_ros-*.whl, the command with its native programs, for CPython 3.10 to 3.14
	@.venv/bin/python scripts/packages.py wheel

packages: ## make dist/boards/: packages for Arduino, ESP-IDF, Zephyr, STM32Cube, Pico and NuttX
	@scripts/setup.sh run
	@.venv/bin/python scripts/packages.py

release: ## make a new dist/ with all that a release publishes, checked by the tool of each channel
	@scripts/setup.sh release
	@scripts/build.sh release programs
	@scripts/build.sh aarch64 programs
	@rm -rf dist
	@.venv/bin/python scripts/packages.py release

docs: ## build the guide into build/site; nothing of it needs a network to be read
	@scripts/setup.sh all
	@.venv/bin/python scripts/guide/build.py

fuzz: ## fuzz with coverage, FUZZ_SECONDS each target (default 300)
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $${FUZZ_SECONDS:-300}

clean: ## remove all builds (not the Python environment)
	rm -rf build results
