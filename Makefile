# Hermes: thin names over swift and scripts/. `make help` lists them.

export HERMES_STRICT ?= 1
# SwiftPM writes sets into its plan in the order of their hashes; without this, each new plan compiles some modules again.
export SWIFT_DETERMINISTIC_HASHING = 1
# Another C compiler or other search paths would compile everything again.
unexport CC CXX CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH SDKROOT

export SWIFT ?= swift
# With options that this machine's compiler takes; the shell asks for them.
RELEASE := $(SWIFT) build -c release --product hermes $$(scripts/cxx-flags release)
ARGS ?=
BUILD_FLAGS ?=

.PHONY: help run build build-tests test web-test lint format bench fuzz docs interop soak crash bootstrap clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

bootstrap: ## find what the machine lacks; install it when root
	@scripts/bootstrap

run: bootstrap ## build for release and start the server (make run ARGS="--log.level debug")
	@scripts/build-if-changed $(RELEASE)
	@exec .build/release/hermes serve $(ARGS)

build: bootstrap ## build for release
	@scripts/build-if-changed $(RELEASE)

build-tests test: export HERMES_DEV = 1
build-tests: bootstrap ## build all tests
	@scripts/build-progress $(SWIFT) build --build-tests $$(scripts/cxx-flags debug) $(BUILD_FLAGS)

test: build-tests ## run all tests, those of the benchmarks too (make test ARGS="--filter MQTTWillTests")
	@[ -n "$(ARGS)" ] || scripts/check-types-without-pages
	@scripts/test $(BUILD_FLAGS) -- $(ARGS)

web-test: ## test the JavaScript SDK in Node, with the release build if there is one
	@scripts/web-test $(ARGS)

lint: ## check format, layers, file sizes, headers, generated code
	@scripts/lint

format: ## format all Swift files in place
	$(SWIFT) format format --in-place --parallel --recursive Package.swift Sources Tests Benchmarks

bench: build ## measure this server on this machine; builds hermes-bench
	@scripts/bench $(ARGS)

fuzz: bootstrap ## fuzz decoders, connections and clients (make fuzz ARGS="--seconds 600")
	@scripts/fuzz $(ARGS)

docs: bootstrap ## write docs/hermes.yaml and docs/configuration.md anew
	@scripts/generate-docs

interop: build ## run foreign clients against the release build
	@Interop/run $(ARGS)

soak: build ## attack, cut the power, run the fault schedules and fuzz, for hours
	@Interop/attack --each --scale 1 --seconds 20 $(ARGS)
	@Interop/powercut
	@Interop/console --scale
	@Interop/example
	@scripts/check-without-pages
	@scripts/web-test
	@scripts/build-progress $(SWIFT) build --build-tests $$(scripts/cxx-flags debug) $(BUILD_FLAGS)
	@Interop/schedules
	@scripts/fuzz --seconds 1800

crash: build ## kill the server again and again under load; nothing acknowledged may be lost
	@Interop/crash $(ARGS)
	@Interop/mqtt-crash $(ARGS)

clean: ## remove what was built
	rm -rf .build
