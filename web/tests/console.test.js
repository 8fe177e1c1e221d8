// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { ConsoleAPI, Refusal, decoded, encoded } from "../console/api.js";
import { chinese, problems } from "../console/zh.js";
import { parts, query } from "../console/reports.js";
import { Series, ceiling, curve, numberText, plots } from "../console/series.js";

/** Loads the texts of the page. The page reads the language from the browser. */
async function consoleTexts() {
    Object.assign(globalThis, { localStorage: { getItem: () => "en" } });
    return import("../console/i18n.js");
}

const folder = new URL("../console/", import.meta.url);
const sources = readdirSync(folder).filter((name) => name.endsWith(".js"))
    .map((name) => /** @type {const} */ ([name, readFileSync(new URL(name, folder), "utf8")]));

test("nothing that comes from elsewhere becomes markup or a script", () => {
    assert.ok(sources.length >= 6);
    for (const [name, text] of sources) {
        for (const bad of ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
            "javascript:", "srcdoc", "setHTML", "createContextualFragment", "DOMParser"]) {
            assert.ok(!text.includes(bad), `${name} has ${bad}`);
        }
        // Addresses never come from data. All links lead to pages of the console.
        for (const [, target] of text.matchAll(/href: ([^,}\n]+)/g)) assert.match(target, /^["`]#/, `${name}: ${target}`);
    }
});

test("every text of the page is there in Chinese, with the same places", () => {
    const texts = new Set(plots.map(([, title]) => title));
    for (const [name, text] of sources) {
        if (name === "i18n.js") continue;
        for (const [, found] of text.matchAll(/\bt\("((?:[^"\\]|\\.)*)"/g)) texts.add(found);
        for (const [, one, many] of text.matchAll(/\bcounted\([^"]+?, "([^"]+)",\s+"([^"]+)"/g)) texts.add(one).add(many);
        if (name === "search.js") for (const [, title] of text.matchAll(/\["([^"]+)", "\w+"\]/g)) texts.add(title);
        if (name !== "console.js") continue;
        for (const [, title] of text.matchAll(/\["\w+", "([^"]+)", "\w+", \w+\]/g)) texts.add(title);
    }
    assert.ok(texts.size > 200);
    const places = (/** @type {string} */ text) => [...text.matchAll(/\{\d\}/g)].map(String).sort();
    for (const text of texts) {
        assert.ok(chinese[text], `no Chinese for "${text}"`);
        assert.deepEqual(places(chinese[text]), places(text), text);
    }
});

test("each number of an error has a text in Chinese, and a number without one has the server's", async () => {
    const { refusalText, language } = await consoleTexts();
    const listed = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
    // The codes for malformed bytes belong to protocols that the console does not use.
    const codes = [...listed.matchAll(/^\| (\d{4}) \|/gm)].map(([, code]) => Number(code)).filter((code) => code < 4000 || code >= 5000);
    assert.ok(codes.length > 20);
    for (const code of [...codes, 101, 105]) assert.ok(problems[code], `no Chinese for ${code}`);
    const text = (/** @type {number} */ code) => refusalText(new Refusal(409, code, "In {0} words."));
    language.current = "zh";
    assert.equal(text(1006), problems[1006]);
    assert.equal(text(2001), problems[2001].replace("{0}", "In {0} words."));
    assert.equal(text(7777), "In {0} words.");
    language.current = "en";
    assert.equal(text(1006), "In {0} words.");
});

test("the fixed values of the server are translated, and no other texts of it", async () => {
    const { word, language } = await consoleTexts();
    language.current = "zh";
    for (const value of ["default", "command line", "local", "done", "wrong name or password", "deleteUser", "addAdministrator"]) {
        assert.equal(word(value), chinese[value], value);
        assert.ok(chinese[value], value);
    }
    for (const value of ["HERMES_LOG_LEVEL", "constructor", "__proto__", "", "{0} of {1} words"]) assert.equal(word(value), value);
    language.current = "en";
    assert.equal(word("done"), "done");
});

test("one thing is told as one", async () => {
    const { counted } = await consoleTexts();
    const text = (/** @type {number} */ count) => counted(count, "{0} inbox", "{0} inboxes");
    assert.deepEqual([0, 1, 2].map(text), ["0 inboxes", "1 inbox", "2 inboxes"]);
    for (const [name, source] of sources) {
        for (const [, found] of source.matchAll(/\bt\("((?:[^"\\]|\\.)*)"/g)) {
            assert.doesNotMatch(found, /\{\d\} (connections|inboxes|messages|members|clients|devices)\b/, name);
        }
    }
});

test("what apps report is asked for by what is chosen, and has names in Chinese", () => {
    assert.equal(query("hour", { version: null, network: null }), "period=hour");
    assert.equal(query("day", { version: "", network: "a&b" }), "period=day&app_version=&network=a%26b");
    for (const [title, figures] of parts) {
        for (const text of [title, ...figures.map(([, name]) => name)]) assert.ok(chinese[text], text);
    }
    const keys = parts.flatMap(([, figures]) => figures.map(([key]) => key));
    assert.equal(new Set(keys).size, 14);
});

test("a series is extended by what is newer, and keeps as much as fits", () => {
    const series = new Series(4);
    series.take({ interval_ms: 10, from_ms: 100, figures: { "a.x": [1, 2], "a.y": [null, 3] } });
    assert.equal(series.last, 110);
    series.take({ interval_ms: 10, from_ms: 120, figures: { "a.x": [3], "a.y": [4] } });
    assert.deepEqual(series.of("a"), [["x", [1, 2, 3]], ["y", [null, 3, 4]]]);
    series.take({ interval_ms: 10, from_ms: 130, figures: { "a.x": [4, 5], "a.y": [5, 6] } });
    assert.deepEqual(series.of("a"), [["x", [2, 3, 4, 5]], ["y", [3, 4, 5, 6]]]);
    assert.equal(series.from, 110);
    series.take({ interval_ms: 10, from_ms: 150, figures: { "a.x": [], "a.y": [] } });
    assert.equal(series.length, 4);
    // The page was suspended. There is a gap, so the series begins again.
    series.take({ interval_ms: 10, from_ms: 900, figures: { "a.x": [9] } });
    assert.deepEqual([series.from, series.of("a")], [900, [["x", [9]]]]);
});

test("a month has its maxima, an hour has none", () => {
    const series = new Series(4);
    series.take({ interval_ms: 10, from_ms: 100, figures: { "a.x": [1, null] }, maxima: { "a.x": [5, null], "ab.x": [7, 8] } });
    assert.deepEqual(series.of("a", series.maxima), [["x", [5, null]]]);
    series.take({ interval_ms: 10, from_ms: 900, figures: { "a.x": [1] } });
    assert.deepEqual(series.of("a", series.maxima), []);
});

test("numbers of one plot have one unit", () => {
    const series = new Series();
    series.take({ interval_ms: 10, from_ms: 0, figures: { "inbox.entries": [3], "inbox.bytes": [4096] } });
    const shown = plots.map(([name, , kind]) => [kind, series.of(name)]).filter(([, figures]) => figures.length > 0);
    assert.deepEqual(shown, [["count", [["entries", [3]]]], ["bytes", [["bytes", [4096]]]]]);
});

test("a path leaves gaps where there are no values", () => {
    assert.equal(curve([0, 10, null, 10], 10, 300, 104), "M0.0 102.0L100.0 2.0M300.0 2.0h.1");
    assert.equal(curve([], 10, 300, 104), "");
    assert.equal(curve([99], 10, 300, 104), "M300.0 2.0h.1");
    assert.equal(curve([null, null], 0, 300, 104), "");
});

test("payloads are shown as texts, JSON or hexadecimal digits, cut, and without what cannot be seen", async () => {
    Object.assign(globalThis, { localStorage: { getItem: () => "en" } });
    const { cut, payloadText, visible } = await import("../console/payload.js");
    assert.equal(payloadText({ text: "<b>21" }, "text"), "<b>21");
    assert.equal(payloadText({ text: '{"a":[1]}' }, "JSON"), '{\n  "a": [\n    1\n  ]\n}');
    for (const bad of ["{", "x", ""]) assert.equal(payloadText({ text: bad }, "JSON"), bad);
    assert.equal(payloadText({ text: "<é" }, "hex"), "3c c3 a9");
    // A payload that is not a text has no other form.
    for (const form of ["text", "JSON", "hex"]) assert.equal(payloadText({ base64: "/wA=" }, form), "ff 00");
    assert.equal(payloadText({ base64: "" }, "text"), "");
    assert.equal(payloadText({ too_large: true, bytes: 70000 }, "text"), "a message of 70000 bytes");
    assert.equal(cut("x".repeat(9), 9), "x".repeat(9));
    assert.equal(cut("x".repeat(12), 9), `${"x".repeat(9)}… (3 more)`);
    // No character is cut in half.
    assert.equal(cut("😀".repeat(3), 2), "😀😀… (1 more)");
    assert.equal(cut("😀😀", 2), "😀😀");
    assert.equal(payloadText({ text: "ab".repeat(9) }, "hex", 6), "61 62… (16 more)");
    assert.ok(payloadText({ text: `[${"1,".repeat(100_000)}1]` }, "JSON").length < 600);
    assert.equal(visible("a\u202eb\u0000\u2028\u009b\n\tc"), "a\\u202eb\\u0000\\u2028\\u009b\n\tc");
    assert.equal(visible("Grüße 你好 👩‍👧"), "Grüße 你好 👩‍👧");
});

test("scales and numbers are round", () => {
    assert.deepEqual([[[0]], [[3]], [[5.01]], [[1200, null]], [[]]].map(ceiling), [1, 5, 10, 2000, 1]);
    assert.equal(numberText(null, "count"), "–");
    assert.equal(numberText(1536, "bytes"), "1.5 KiB");
    assert.equal(numberText(12.3456, "rate"), "12.35");
    assert.equal(numberText(12345.6, "count"), "12,346");
    assert.equal(new Set(plots.map(([name]) => name)).size, plots.length);
});

/** The requests that are sent without a question, by the beginning of the path. They delete nothing. */
const unasked = ["login", "logout", "users\"", "keys\"", "invitations\"", "rooms/${encoded(name)}/messages`", "topics/publish\""];

/**
 * Returns the requests in a source that are not GET. Each has the text from the beginning of its action to the request.
 *
 * @param {string} text
 */
function changes(text) {
    return [...text.matchAll(/\brequest\("(POST|DELETE|PATCH|PUT)", (.+)/g)].map((found) => {
        const before = text.slice(0, found.index);
        const begin = Math.max(before.lastIndexOf("page.attempt("), before.lastIndexOf("async function "), before.lastIndexOf("\n    async "));
        return { method: found[1], path: found[2], before: before.slice(begin) };
    });
}

/** Whether the action continues only after the user has confirmed it. */
const isAsked = (/** @type {string} */ before) => /if \((!\w+\.\w+ && )?!await confirmed\([^]+\)\) return;\n/.test(before);

test("whatever destroys something asks before, and only what destroys nothing does not", () => {
    const found = sources.flatMap(([name, text]) => changes(text).map((change) => ({ name, ...change })));
    assert.ok(found.length >= 18, `${found.length}`);
    for (const [name, text] of sources) {
        for (const [, first] of text.matchAll(/\.request\((.{4})/g)) assert.match(first, /"(GET|POS|DEL|PAT)/, `${name}: a method that cannot be read here`);
    }
    for (const { name, method, path, before } of found) {
        const isHarmless = method === "POST" && unasked.some((one) => path.slice(1).startsWith(one));
        if (isHarmless) assert.ok(!isAsked(before), `${name}: ${path} is asked for; take it off the list`);
        else assert.ok(isAsked(before), `${name}: ${method} ${path} is not asked for`);
    }
    for (const one of unasked) assert.ok(found.some(({ path }) => path.slice(1).startsWith(one)), `${one} is nowhere`);
    // Enabling an account deletes nothing.
    const enable = 'page.attempt(async () => {\n if (!user.disabled && !await confirmed(a, b)) return;\n';
    assert.ok(isAsked(enable) && !isAsked("page.attempt(async () => {\n await confirmed(a);\n"));
});

/**
 * @param {number} status
 * @param {any} body
 */
const answer = (status, body) => new Response(body === null ? null : JSON.stringify(body), { status });

test("a change carries the session's token, and an ended session is told once", async () => {
    /** @type {any[]} */
    const sent = [];
    /** @type {Response[]} */
    const answers = [
        answer(200, { code_needed: true }), answer(200, { name: "ann", role: "operator", csrf_token: "t" }),
        answer(204, null), answer(401, { code: 1001, detail: "ended" }), answer(401, { code: 1001, detail: "ended" }),
    ];
    const api = new ConsoleAPI(/** @type {any} */ (async (/** @type {any} */ path, /** @type {any} */ init) => {
        sent.push([path, init]);
        return answers.shift();
    }));
    let ends = 0;
    api.onEnd = () => { ends += 1; };
    assert.equal(await api.logIn("ann", "secret", ""), false);
    assert.equal(await api.logIn("ann", "secret", "123456"), true);
    assert.ok(api.may("viewer") && api.may("operator") && !api.may("administrator"));
    await api.request("DELETE", `users/${encoded("../x?y#z")}`);
    assert.equal(sent[2][0], "api/users/..%2Fx%3Fy%23z");
    assert.equal(sent[2][1].headers["X-CSRF-Token"], "t");
    for (const part of ["../x?y#z", "a/<b>", "100%", ""]) assert.equal(decoded(encoded(part)), part);
    assert.equal(decoded("%E0%A4%A"), "");
    await assert.rejects(api.get("users"), (error) => error instanceof Refusal && error.message === "ended" && error.code === 1001);
    assert.equal(sent[3][1].headers["X-CSRF-Token"], undefined);
    await assert.rejects(api.get("users"), Refusal);
    assert.equal(ends, 1);
});

test("nobody is logged in without an error; an answer of somebody else is one", async () => {
    const answers = [answer(200, { session: null }), answer(200, { session: { name: "ann", role: "viewer", csrf_token: "t" } }),
        new Response("<h1>Bad gateway</h1>", { status: 502 })];
    const api = new ConsoleAPI(/** @type {any} */ (async () => answers.shift()));
    assert.equal(await api.resume(), false);
    assert.equal(await api.resume(), true);
    assert.ok(api.may("viewer"));
    await assert.rejects(api.get("users"), (/** @type {any} */ error) => error.status === 502 && error.code === 105);
    api.send = () => Promise.reject(new TypeError());
    await assert.rejects(api.get("users"), (/** @type {any} */ error) => error.status === 0 && error.code === 101);
});

test("the reason why a stream is refused is asked for, and a stream that is not refused is not read", async () => {
    /** @type {any[]} */
    const sent = [];
    const answers = [answer(400, { code: 2001, detail: "filter: it has no end" }), new Response(new ReadableStream())];
    const api = new ConsoleAPI(/** @type {any} */ (async (/** @type {any} */ path, /** @type {any} */ init) => {
        sent.push([path, init]);
        return answers.shift();
    }));
    assert.equal((await api.refusalOf("topics/watch?filter=a"))?.message, "filter: it has no end");
    assert.equal(await api.refusalOf("topics/watch?filter=a"), null);
    assert.equal(sent[1][0], "api/topics/watch?filter=a");
    assert.ok(sent[1][1].signal.aborted);
});
