// Hermes
// SPDX-License-Identifier: Apache-2.0

// Runs the cases of web/cases/connection.json on the connection machine.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { ConnectionMachine } from "../connection.js";
import { HermesError } from "../errors.js";
import { adaptiveHeartbeat, learnedHeartbeat, pushHeartbeat } from "../heartbeat.js";
import { standardPolicy } from "../reconnect.js";
import { splitMix64 } from "./support.js";

const { cases } = JSON.parse(readFileSync(new URL("../cases/connection.json", import.meta.url), "utf8"));

describe("connection.json", () => {
    for (const { name, heartbeat, learned, steps } of cases) {
        test(name, () => {
            const policy = heartbeat === "adaptive" ? adaptiveHeartbeat : pushHeartbeat;
            const known = learned ? { ...learnedHeartbeat(0), ...learned } : null;
            const machine = new ConnectionMachine(policy, standardPolicy, known, splitMix64(1));
            for (const [index, step] of steps.entries()) {
                const { now } = step;
                const error = new HermesError(step.code ?? 102, "test", step.retryAfter ?? null);
                const calls = {
                    start: () => machine.startRequested(),
                    stop: () => machine.stopRequested(),
                    connected: () => machine.connected(now),
                    authenticated: () => machine.authenticated(step.atMost ?? null, 0, now),
                    refused: () => machine.authenticationRefused(error, now),
                    received: () => machine.received(now),
                    wrote: () => machine.wrote(now),
                    deadline: () => machine.deadlineReached(now),
                    requestExpired: () => machine.requestExpired(now),
                    kicked: () => machine.kicked(error, step.mayReturn, step.advice ?? null, now),
                    shutdownAnnounced: () => machine.shutdownAnnounced(step.advice, now),
                    reconnectAdvised: () => machine.reconnectAdvised(step.advice, now),
                    failed: () => machine.failed(error, now),
                    closed: () => machine.connectionClosed(error, now),
                    suggested: () => machine.heartbeatSuggested(step.interval),
                    conditions: () => machine.conditionsChanged({ app: step.app, isOnline: step.isOnline }, now),
                };
                const actions = calls[step.do]() ?? [];
                const place = `step ${index} (${step.do})`;
                const expected = step.expectIn?.javascript ?? step.expect;
                if (expected) assert.deepEqual(actions, expected, place);
                if (step.state) assert.equal(machine.state.is, step.state, place);
                if (step.error) assert.equal(machine.state.error?.code, step.error, place);
                if ("nextDeadline" in step) assert.equal(machine.nextDeadline, step.nextDeadline, place);
                if (step.within) {
                    const at = machine.nextDeadline;
                    assert.ok(at >= step.within[0] && at <= step.within[1], `${place}: ${at}`);
                }
                if ("failures" in step) assert.equal(machine.failures, step.failures, place);
                if (step.learned) assert.equal(machine.learned.interval, step.learned, place);
            }
        });
    }
});
