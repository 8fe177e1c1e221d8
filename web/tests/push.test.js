// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { disablePush, enablePush } from "./sdk.js";
import { notificationOf, showNotifications } from "../notifications.js";

const scope = "https://chat.example/chat/";

/**
 * A service worker's global object, with the notifications that it showed and the pages that it opened. Pages without a
 * URL are in its scope.
 */
function fakeWorker(pages = []) {
    const handlers = {};
    const worker = {
        shown: [],
        opened: [],
        badge: null,
        addEventListener: (name, handler) => (handlers[name] = handler),
        clients: {
            matchAll: async () => pages.map((page) => ({ url: `${scope}index.html`, ...page })),
            openWindow: async (page) => void worker.opened.push(page),
        },
        navigator: { setAppBadge: async (badge) => void (worker.badge = badge) },
        registration: { scope, showNotification: async (title, options) => void worker.shown.push({ title, ...options }) },
        async dispatch(name, event) {
            let done;
            handlers[name]({ ...event, waitUntil: (promise) => (done = promise) });
            await done;
        },
    };
    return worker;
}

describe("notifications", () => {
    const text = JSON.stringify({
        title: "Bob",
        body: "hello",
        badge: 3,
        tag: "direct/1-2",
        hermes: { conversation: "direct/7", seq: 42 },
        data: { order: 1 },
    });

    test("a push is shown, and a later one of its conversation replaces it", async () => {
        const worker = fakeWorker([{ focused: false }]);
        showNotifications(worker);
        await worker.dispatch("push", { data: { text: () => text } });
        const [shown] = worker.shown;
        assert.deepEqual([shown.title, shown.body, shown.tag, shown.renotify], ["Bob", "hello", "direct/1-2", true]);
        assert.equal(worker.badge, 3);
    });

    test("a page that has the focus shows its messages itself", async () => {
        const worker = fakeWorker([{ focused: true }]);
        showNotifications(worker);
        await worker.dispatch("push", { data: { text: () => text } });
        assert.deepEqual([worker.shown, worker.badge], [[], null]);
    });

    test("a page of another app of the origin shows nothing, and is not told of a click", async () => {
        const other = { url: "https://chat.example/console/", focused: true, focus: () => assert.fail(), postMessage: () => assert.fail() };
        const worker = fakeWorker([other]);
        showNotifications(worker, { page: "./here" });
        await worker.dispatch("push", { data: { text: () => text } });
        assert.equal(worker.shown.length, 1);
        await worker.dispatch("notificationclick", { notification: { data: worker.shown[0].data, close() {} } });
        assert.deepEqual(worker.opened, ["./here"]);
    });

    test("a page of another account shows nothing; a click goes to the page of the account", async () => {
        const told = [];
        const page = (name) => ({ name, focused: true, focus: async () => {}, postMessage: () => told.push(name) });
        const shows = async (one, hermes) => one.name === "b" && hermes.seq === 42;
        const other = fakeWorker([page("a")]);
        showNotifications(other, { shows });
        await other.dispatch("push", { data: { text: () => text } });
        assert.equal(other.shown.length, 1);
        const notification = { data: other.shown[0].data, close() {} };
        const both = fakeWorker([page("a"), page("b")]);
        showNotifications(both, { shows });
        await both.dispatch("push", { data: { text: () => text } });
        assert.deepEqual(both.shown, []);
        await both.dispatch("notificationclick", { notification });
        // If no page shows the account, one of the pages gets the click.
        await other.dispatch("notificationclick", { notification });
        assert.deepEqual(told, ["b", "a"]);
    });

    test("a page that may not get the focus is told of a click all the same", async () => {
        const posted = [];
        const focus = async () => assert.fail("not allowed");
        const worker = fakeWorker([{ focus, postMessage: (data) => posted.push(data.type) }]);
        showNotifications(worker);
        await worker.dispatch("notificationclick", { notification: { data: {}, close() {} } });
        assert.deepEqual(posted, ["hermes.notification"]);
    });

    test("the page that a click opens may depend on the entry", async () => {
        const worker = fakeWorker();
        showNotifications(worker, { page: (hermes) => `./#${hermes.seq}` });
        await worker.dispatch("notificationclick", { notification: { data: { hermes: { seq: 42 } }, close() {} } });
        assert.deepEqual(worker.opened, ["./#42"]);
    });

    test("a click brings the page to the front and tells it which entry", async () => {
        const posted = [];
        const focus = async () => void posted.push("focus");
        const page = { focused: false, focus, postMessage: (data) => posted.push(data) };
        const worker = fakeWorker([page]);
        showNotifications(worker);
        await worker.dispatch("push", { data: { text: () => text } });
        const notification = { data: worker.shown[0].data, close() {} };
        await worker.dispatch("notificationclick", { notification });
        assert.equal(posted[0], "focus");
        const { type, hermes, data } = posted[1];
        assert.deepEqual([type, hermes.seq, data.order], ["hermes.notification", 42, 1]);
        const empty = fakeWorker();
        showNotifications(empty, { page: "/chat/" });
        await empty.dispatch("notificationclick", { notification });
        assert.deepEqual(empty.opened, ["/chat/"]);
    });

    for (const odd of [undefined, "", "{", "null", "7", '{"title":{},"body":[],"badge":"x","tag":1}']) {
        test(`a push of ${odd} shows something`, () => {
            const { title, options, badge } = notificationOf(odd, "Hermes");
            const { body, tag, renotify } = options;
            assert.deepEqual([title, body, tag, renotify, badge], ["Hermes", "", "", false, null]);
        });
    }
});

describe("subscriptions", () => {
    const real = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    afterEach(() => {
        delete globalThis.Notification;
        if (real) Object.defineProperty(globalThis, "navigator", real);
        else delete globalThis.navigator;
    });

    /** A browser whose user answers `permission`. It may already have a subscription. */
    function browser(permission, known = null) {
        const state = { subscription: known, ended: 0 };
        const pushManager = {
            getSubscription: async () => state.subscription,
            subscribe: async (options) => {
                const unsubscribe = async () => void (state.ended += 1);
                state.subscription = { options, unsubscribe, toJSON: () => ({ endpoint: "https://push.example/1" }) };
                return state.subscription;
            },
        };
        const registration = { pushManager };
        const serviceWorker = {
            register: async () => registration,
            getRegistration: async () => registration,
            ready: Promise.resolve(registration),
        };
        globalThis.Notification = { requestPermission: async () => permission };
        Object.defineProperty(globalThis, "navigator", { value: { serviceWorker }, configurable: true });
        return state;
    }

    test("are registered once the user allows it", async () => {
        const tokens = [];
        const registerPush = async (one) => tokens.push(JSON.stringify(one));
        const client = { registerPush, clearPush: async () => tokens.pop() };
        assert.equal((browser("denied"), await enablePush(client, { publicKey: "AQID" })), false);
        const state = browser("granted");
        assert.equal(await enablePush(client, { publicKey: "AQID" }), true);
        assert.deepEqual([...state.subscription.options.applicationServerKey], [1, 2, 3]);
        assert.deepEqual(tokens, ['{"endpoint":"https://push.example/1"}']);
        await disablePush(client);
        assert.deepEqual([tokens.length, state.ended], [0, 1]);
        const isAway = { ...client, clearPush: async () => assert.fail("away") };
        await assert.rejects(disablePush(isAway), /away/);
        assert.equal(state.ended, 2, "without the server the browser ends it");
    });

    test("are made anew when the server's key changed", async () => {
        let ended = 0;
        const options = { applicationServerKey: new Uint8Array([9]).buffer };
        const state = browser("granted", { options, unsubscribe: async () => void (ended += 1) });
        await enablePush({ registerPush: async () => {} }, { publicKey: "AQID" });
        assert.equal(ended, 1);
        assert.deepEqual([...state.subscription.options.applicationServerKey], [1, 2, 3]);
    });
});
