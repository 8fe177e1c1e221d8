// Hermes
// SPDX-License-Identifier: Apache-2.0

// The check of requests before they are sent.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { flawOf } from "../flaws.js";

const folder = new URL("../../Proto/hermes/v1/", import.meta.url);
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

/** The fields of each message of the schemas: `{ name, type, isList, oneof }`. Nested types have their simple names. */
function schemas() {
    const messages = new Map();
    for (const file of readdirSync(folder)) {
        const stack = [];
        for (const line of readFileSync(new URL(file, folder), "utf8").split("\n")) {
            const [, kind, name, end] = /^\s*(message|enum|oneof) (\w+) \{(\})?/.exec(line) ?? [];
            const field = /^\s*(repeated |optional )?(map<string, string>|[\w.]+) (\w+) = \d+;/.exec(line);
            if (kind === "message") messages.set(name, []);
            if (kind && !end) stack.push({ kind, name });
            else if (/^\s*\}/.test(line)) stack.pop();
            else if (field) {
                const owner = stack.findLast((each) => each.kind === "message").name;
                const oneof = stack.at(-1).kind === "oneof";
                messages.get(owner).push({ name: camel(field[3]), type: field[2], isList: field[1] === "repeated ", oneof });
            }
        }
    }
    return messages;
}

const good = {
    string: ["", "x", new String("x"), new URL("wss://a.example/"), new Date(0)],
    bool: [true, false],
    bytes: ["", "AA", "AA==", "AAA", "AAA=", "AAAA", "+/+/", "-_-_", "A A = ="],
    uint32: [0, 2 ** 32 - 1, "7", "7.0", "7e0", "0.7E+1", new Number(7)],
    int32: [-(2 ** 31), 2 ** 31 - 1, "-7", "-7.0", "-0"],
    uint64: [0, 2 ** 53, 2 ** 64 - 2 ** 11, "1e3", "18446744073709551615"],
    int64: [-1, -(2 ** 62), "-9223372036854775808", "9223372036854775807"],
    double: [0, -1.5, "1.50", "1e1", "1E-400", 1e300, "NaN", "Infinity", "-Infinity", "-Inf"],
    "map<string, string>": [{}, { a: "b", "\u00e9": "" }, { a: undefined, b: new String("x"), c: () => 1 }],
};
const wrong = {
    string: [7, true, {}, []],
    bool: [0, "true", {}, []],
    bytes: [7, "A", "A===", "AA=", "AAAA=", "a b=", "A", "-/AA", "é", [], new Uint8Array(2)],
    uint32: [-1, 1.5, 2 ** 32, NaN, Infinity, 7n, "", "1.5", "-1", "01", "x", "4294967296", "-0", "7.", "1e99", "0x7", true, {}, []],
    int32: [1.5, 2 ** 31, "2147483648", "1.5", true],
    uint64: [-1, 0.5, 2 ** 64, "-1", "undefined", "18446744073709551616", "1e-3"],
    int64: [0.5, 2 ** 63, "9223372036854775808"],
    double: [NaN, Infinity, "x", "", ".5", "5.", "1e999", "0".repeat(2), `0.${"1".repeat(126)}`, true, {}],
    "map<string, string>": [{ a: 7 }, { a: null }, { a: new Number(7) }, { "\u00e9": "", "e\u0301": "" }, [], "x"],
};
const wrongMessage = [7, "x", true, []];
const wrongEnum = [1.5, 2 ** 63, true, {}, []];

/** The bodies that the app sends. The client makes all other bodies. */
const bodies =
    "send markRead typing recall contact group presence room device signal ping account logOut history conversations";

describe("a value that proto3 JSON does not allow is found, and named", () => {
    const messages = schemas();

    function check(type, wrap, path) {
        for (const field of messages.get(type)) {
            const isMessage = messages.has(field.type);
            const inList = (value) => wrap({ [field.name]: field.isList ? [value] : value });
            const named = `${path}.${field.name}`;
            const values = wrong[field.type] ?? (isMessage ? wrongMessage : wrongEnum);
            for (const value of values) {
                const flaw = flawOf(inList(value));
                assert.ok(flaw.includes(named), `${named}: ${typeof value} ${String(value)}: ${flaw}`);
            }
            for (const value of good[field.type] ?? (isMessage ? [{}] : ["WORD", 1])) {
                assert.equal(flawOf(inList(value)), "", `${named}: ${JSON.stringify(value)}`);
            }
            assert.equal(flawOf(wrap({ [field.name]: null })), "", named);
            if (field.isList) assert.ok(flawOf(inList(null)).includes(named) && flawOf(wrap({ [field.name]: 7 })));
            if (isMessage) check(field.type, inList, field.isList ? `${named}.0` : named);
        }
        const choices = messages.get(type).filter(({ oneof }) => oneof).slice(0, 2);
        if (choices.length < 2) return;
        const both = Object.fromEntries(choices.map((field) => [field.name, good[field.type]?.[0] ?? {}]));
        assert.ok(flawOf(wrap(both)), `${path}: two fields of a oneof`);
    }

    const packet = messages.get("Packet");
    for (const body of bodies.split(" ")) {
        test(`in ${body}`, () => {
            const { type } = packet.find(({ name }) => name === body);
            check(type, (value) => ({ [body]: value }), body);
        });
    }
});

test("what JSON drops is no value, except in a list", () => {
    const content = { text: "x", attributes: { replyTo: undefined, kind: "note" }, image: undefined, sound: () => {} };
    assert.equal(flawOf({ send: { to: { uid: 7, groupId: undefined }, content }, ping: undefined }), "");
    assert.match(flawOf({ presence: { watchUids: [undefined] } }), /watchUids\.0/);
});

test("a value is what its toJSON returns", () => {
    const own = (json) => ({ toJSON: () => json });
    assert.equal(flawOf(own({ send: own({ to: { uid: own(7) }, content: { text: own("x") } }) })), "");
    assert.match(flawOf({ send: { content: { text: own(7) } } }), /content\.text/);
});

test("fields that the schemas do not have are passed over", () => {
    assert.equal(flawOf({ send: { to: { uid: 7 }, newer: 1.5, content: { text: "x", newer: [null] } }, other: 7 }), "");
    assert.equal(flawOf(undefined), "");
});

test("base64 of the longest frame is read", () => {
    const data = "A".repeat(8 * 1_048_576);
    assert.equal(flawOf({ signal: { data } }), "");
    assert.notEqual(flawOf({ signal: { data: `${data}!` } }), "");
});
