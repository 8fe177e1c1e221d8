// Hermes
// SPDX-License-Identifier: Apache-2.0

// The contents that the chat composes and shows.
import assert from "node:assert/strict";
import { test } from "node:test";

Object.defineProperty(globalThis, "localStorage", { value: { getItem: () => "en", setItem() {} }, configurable: true });
const { beginning, composed, extra, kinds, summary } = await import("../chat/contents.js");

const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const custom = (bytes) => ({ custom: { type: "order", data: base64(bytes) }, attributes: {} });

test("each kind has the fields of the schema", async () => {
    const { readFileSync } = await import("node:fs");
    const schema = readFileSync(new URL("../../Proto/hermes/v1/message.proto", import.meta.url), "utf8");
    const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    const [, content] = schema.split("message Content {");
    const oneof = content.slice(content.indexOf("oneof kind {"), content.indexOf("map<string, string>"));
    const names = [...oneof.matchAll(/^ {4}\w+ (\w+) = \d+;/gm)].map((match) => match[1]);
    assert.deepEqual(["text", ...Object.keys(kinds)].sort(), names.sort());
    for (const [kind, fields] of Object.entries(kinds)) {
        const body = content.split(new RegExp(`message ${kind}\\b`, "i"))[1].split("}")[0];
        const known = [...body.matchAll(/^ +\w+ (\w+) = \d+;/gm)].map((match) => camel(match[1]));
        assert.deepEqual(fields.map((field) => field.name).sort(), known.sort(), kind);
    }
});

test("a push without words has words all the same", () => {
    const typed = { typed: { type: "shop.Shipped", bytes: 4 } };
    assert.deepEqual([summary(typed), extra(typed)], ["Content of kind shop.Shipped", "4 bytes"]);
    const both = { text: "on its way", ...typed };
    assert.deepEqual([summary(both), extra(both)], ["on its way", "shop.Shipped: 4 bytes"]);
    assert.equal(summary({ typed: { type: "", bytes: 4 } }), "Content of the application");
    assert.deepEqual([summary({ data: '{"a":1}' }), extra({ data: '{"a":1}' })], ["Content of the application", '{"a":1}']);
});

test("a content is composed of the form's values", () => {
    assert.deepEqual(composed("image", { url: " https://a.example/b ", width: "640", height: "" }, ""), {
        image: { url: "https://a.example/b", width: 640, height: 0 },
        attributes: {},
    });
    assert.deepEqual(composed("text", { text: "hello" }, "a=b=c\n\n d = e \nempty="), {
        text: "hello",
        attributes: { a: "b=c", d: "e", empty: "" },
    });
    const { custom: made } = composed("custom", { type: "x", data: "你好" }, "");
    assert.equal(Buffer.from(made.data, "base64").toString(), "你好");
    assert.deepEqual(Object.keys(composed("text", { text: "x" }, "__proto__=x").attributes), ["__proto__"]);
    assert.deepEqual(composed("text", { text: "x" }, "e\u0301=1\n\u00e9=2").attributes, { "\u00e9": "2" });
});

test("attributes that are no pairs, or too many, are refused", () => {
    for (const attributes of ["no pair", "=value", "a=b\nc", Array.from({ length: 33 }, (_, n) => `${n}=x`).join("\n")]) {
        assert.throws(() => composed("text", { text: "x" }, attributes), /32 at most/, attributes);
    }
});

test("an application's data is shown as a text where it is one, else as its length", () => {
    assert.equal(extra(custom("a text, 你好\n")), "a text, 你好\n");
    assert.equal(extra(custom([1, 2, 3])), "3 bytes");
    assert.equal(extra(custom([0xff, 0xfe])), "2 bytes");
    assert.equal(extra(custom("an escape \u001b[31m")), "15 bytes");
    assert.equal(extra({ custom: { type: "x", data: "not in base 64!" } }), "11 bytes");
    assert.equal(extra({ custom: { type: "x", data: "" } }), "");
    const long = extra(custom("好".repeat(21_845)));
    assert.ok(long.length <= 16_001 && long.endsWith("好…"), `${long.length}`);
});

test("attributes are shown after it, each on a line", () => {
    const content = { ...custom("data"), attributes: { colour: "blue", "a:b": "<i>" } };
    assert.equal(extra(content), "data\na:b: <i>\ncolour: blue");
    assert.equal(extra({ text: "x" }), "");
});

test("every kind has words for the list of conversations", () => {
    const words = (kind, values) => summary({ [kind]: values });
    assert.equal(words("text", "x".repeat(1000)).length, 200);
    assert.equal(words("location", { label: "here" }), "Place: here");
    assert.equal(words("expression", { id: -7, name: "" }), "Emoticon -7");
    assert.equal(words("custom", { type: "order" }), "Content of kind order");
    assert.equal(words("image", {}), "Image");
    assert.equal(summary({}), "Content that this page does not know");
    assert.equal(beginning("ab😀", 3), "ab");
});
