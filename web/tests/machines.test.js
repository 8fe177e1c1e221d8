// Hermes
// SPDX-License-Identifier: Apache-2.0

// Runs the cases of web/cases/*.json on the state machines.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { HermesError } from "../errors.js";
import { heartbeatFailed, heartbeatInterrupted, heartbeatSucceeded, standardAdaptation } from "../heartbeat.js";
import { InboxTracker } from "../inbox.js";
import { OutboxQueue } from "../outbox-queue.js";
import { ReconnectSchedule } from "../reconnect.js";
import { ClockOffset, DeliveryCounter, TopicTracker } from "../statistics.js";
import { splitMix64 } from "./support.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../cases/${name}.json`, import.meta.url), "utf8"));

describe("reconnect.json", () => {
    for (const { name, policy, seed, steps } of read("reconnect").cases) {
        test(name, () => {
            const schedule = new ReconnectSchedule(policy, splitMix64(seed));
            for (const [index, step] of steps.entries()) {
                if (step.do === "startAnew" || step.do === "arrived") schedule[step.do]();
                else if (step.do === "slot") {
                    const { earliest, moment, end } = schedule.slot(step.advice, step.now);
                    assert.deepEqual([earliest, end], [step.earliest, step.end]);
                    assert.ok(moment >= earliest && moment <= end);
                } else {
                    const at = step.do === "next" ? schedule.next(step.now) : schedule.nextAt(step.slot, step.now);
                    if (step.within) {
                        assert.ok(at >= step.within[0] && at < step.within[1], `step ${index}: ${at}`);
                    } else assert.equal(at, step.expect, `step ${index}`);
                }
            }
        });
    }
});

describe("heartbeat.json", () => {
    const functions = { succeeded: heartbeatSucceeded, failed: heartbeatFailed, interrupted: heartbeatInterrupted };
    for (const { name, start, steps } of read("heartbeat").cases) {
        test(name, () => {
            let learned = { successes: 0, failures: 0, ...start };
            for (const [index, step] of steps.entries()) {
                for (let time = 0; time < (step.times ?? 1); time++) {
                    learned = functions[step.do](learned, standardAdaptation, step.date);
                }
                for (const key of ["interval", "isStable", "changedAt"]) {
                    if (key in step) assert.equal(learned[key], step[key], `step ${index}: ${key}`);
                }
            }
        });
    }
});

describe("inbox.json", () => {
    const resumed = (inbox, { epoch, serverAcknowledged, head, now, hasLostEntries }) => {
        const resumption = inbox.resumed(epoch, serverAcknowledged, head, now, hasLostEntries);
        return resumption === "rewound" && inbox.received !== head ? `rewound to ${inbox.received}` : resumption;
    };
    const text = (output) =>
        ({
            deliver: () => `deliver ${output.seq} ${output.entry}`,
            missed: () => `missed ${output.from} ${output.to}`,
            synchronize: () => `synchronize ${output.afterSeq}`,
            acknowledge: () => `acknowledge ${output.upToSeq}`,
        })[output.do]();
    for (const { name, start, steps, counts } of read("inbox").cases) {
        test(name, () => {
            const inbox = new InboxTracker(start.epoch, start.taken);
            for (const [index, step] of steps.entries()) {
                const output = [];
                const { now } = step;
                switch (step.do) {
                    case "resumed":
                        assert.equal(resumed(inbox, step), step.resumption);
                        break;
                    case "arrived":
                        inbox.arrived(step.entry, step.seq, step.to ?? step.seq, 0, now, output);
                        break;
                    case "arriveAll":
                        for (let seq = step.from; seq <= step.to; seq++) {
                            inbox.arrived(`${seq}`, seq, seq, 0, now, output);
                        }
                        assert.equal(output.length, step.to - step.from + 1);
                        break;
                    case "taken":
                        inbox.tookUpTo(step.seq, now, output);
                        break;
                    case "synchronized":
                        inbox.synchronized(step.epoch, step.head, step.oldest, now, output);
                        break;
                    case "deadline":
                        inbox.deadlineReached(now, output);
                        break;
                    case "lost":
                        inbox.lost();
                        break;
                    default:
                        assert.fail(step.do);
                }
                if (step.expect) assert.deepEqual(output.map(text), step.expect, `step ${index}`);
                if ("nextDeadline" in step) assert.equal(inbox.nextDeadline, step.nextDeadline, `step ${index}`);
            }
            assert.deepEqual(inbox.takeCounts(), counts);
        });
    }
});

describe("outbox.json", () => {
    const { limits, cases } = read("outbox");
    for (const { name, steps } of cases) {
        test(name, () => {
            const queue = new OutboxQueue(limits);
            for (const [index, step] of steps.entries()) {
                const number = queue.entry(step.id)?.item.number;
                switch (step.do) {
                    case "added": {
                        const send = { to: { uid: step.to }, clientId: step.id, content: { text: "x" } };
                        const add = () => queue.added(send, step.uid ?? 1, 0);
                        if (step.error) assert.throws(add, { code: step.error }, `step ${index}`);
                        else assert.equal(add().isNew, step.isNew ?? true);
                        break;
                    }
                    case "started":
                        queue.started(step.uid ?? 1);
                        break;
                    case "halted":
                        queue.halted();
                        break;
                    case "stored":
                    case "interrupted":
                        queue[step.do](number);
                        break;
                    case "sent":
                        queue.removed(number);
                        break;
                    case "retried":
                        assert.ok(queue.retried(step.id));
                        break;
                    case "refused": {
                        const error = new HermesError(step.code, "no", step.retryAfter ?? null);
                        assert.equal(queue.refused(number, error, step.now).phase, step.phase);
                        assert.equal(queue.nextDeadline, step.nextDeadline);
                        break;
                    }
                    case "next":
                        assert.deepEqual(
                            queue.next(step.now).map((entry) => entry.item.send.clientId),
                            step.expect,
                            `step ${index}`,
                        );
                        break;
                    default:
                        assert.fail(step.do);
                }
            }
        });
    }
});

describe("clock.json", () => {
    for (const { name, steps } of read("clock").cases) {
        test(name, () => {
            const clock = new ClockOffset();
            for (const [index, step] of steps.entries()) {
                assert.equal(step.do, "answered");
                for (let time = 0; time < (step.times ?? 1); time++) {
                    clock.answered(step.askedAt, step.answeredAt, step.serverTime);
                }
                assert.equal(clock.milliseconds, step.expect, `step ${index}`);
            }
        });
    }
});

describe("topics.json", () => {
    for (const { name, steps } of read("topics").cases) {
        test(name, () => {
            const topics = new TopicTracker();
            for (const [index, step] of steps.entries()) {
                switch (step.do) {
                    case "arrived": {
                        const gap = topics.arrived(step.seq, step.epoch, step.topic);
                        assert.deepEqual(gap && [gap.from, gap.to], step.expect, `step ${index}`);
                        break;
                    }
                    case "arrivedOnEach":
                        for (let number = 0; number < 1000; number++) {
                            assert.equal(topics.arrived(step.seq, step.epoch, `${number}`), null);
                        }
                        break;
                    case "forget":
                        topics.forget(step.topic);
                        break;
                    case "forgetAll":
                        topics.forgetAll();
                        break;
                    default:
                        assert.fail(step.do);
                }
            }
        });
    }
});

describe("statistics.json", () => {
    const names = ["received", "within1S", "within10S", "later", "duplicates", "gaps", "repaired", "lost", "closed"];
    names.push("resets", "heartbeatTimeouts", "networkChanges", "topicMissed", "heartbeatSeconds");
    const zeros = { ...Object.fromEntries(names.map((key) => [key, 0])), heartbeatStable: false };
    const whole = (networks) => networks?.map((network) => ({ ...zeros, ...network })) ?? null;
    const received = (networks) => networks.reduce((sum, network) => sum + network.received, 0);
    for (const { name, steps } of read("statistics").cases) {
        test(name, () => {
            const counter = new DeliveryCounter();
            for (const [index, step] of steps.entries()) {
                const place = `step ${index}`;
                switch (step.do) {
                    case "entered":
                        counter.kind = step.kind;
                        break;
                    case "received":
                        counter.received(step.latency, step.date);
                        break;
                    case "noticed":
                        counter.noticed(step.counts, step.date);
                        break;
                    case "happened":
                        counter.happened(step.what, step.date, step.count);
                        break;
                    case "learned":
                        counter.learned({ ...step, successes: 0, failures: 0, changedAt: 0 }, step.date);
                        break;
                    case "kinds":
                        for (let number = 1; number <= step.count; number++) {
                            counter.kind = `kind-${number}`;
                            counter.received(null, step.date);
                        }
                        break;
                    case "upload": {
                        const networks = counter.upload();
                        if (step.sums) assert.deepEqual([networks.length, received(networks)], step.sums, place);
                        else assert.deepEqual(networks, whole(step.expect), place);
                        break;
                    }
                    case "unsent":
                        assert.deepEqual(counter.unsent, whole(step.expect) ?? [], place);
                        break;
                    case "uploadEnded":
                    case "uploadFailed":
                        counter[step.do]();
                        break;
                    case "restore":
                        counter.restore(whole(step.networks));
                        break;
                    default:
                        assert.fail(step.do);
                }
            }
        });
    }
});
