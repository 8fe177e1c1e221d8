// Hermes
// SPDX-License-Identifier: Apache-2.0

import { disablePush, enablePush } from "../hermes.js";
import { attempt, dialog } from "./dom.js";
import { button, h } from "../dom.js";
import { t } from "./i18n.js";

/**
 * Whether this browser shows notifications for an account's messages.
 *
 * @typedef {"unsupported" | "unavailable" | "blocked" | "off" | "on"} PushState `unavailable` means that the server has
 *   no key.
 */

const worker = "worker.js";
const key = (/** @type {string} */ server) => `hermes-chat/pushes ${server}`;

/**
 * The account for which this browser shows notifications; the name is empty if there is none. The browser has one
 * subscription. The server keeps it only for the device that registered it last.
 *
 * @param {string} server
 * @returns {{ uid: number, name: string }}
 */
function notified(server) {
    const value = localStorage.getItem(key(server)) ?? "";
    try {
        const { uid, name } = JSON.parse(value);
        if (Number.isSafeInteger(uid) && typeof name === "string") return { uid, name };
    } catch {
        // In earlier versions, the value was only the name in lower case.
    }
    return { uid: 0, name: value };
}

/**
 * @param {string} server
 * @param {import("./account.js").Account} account
 */
function isNotified(server, { chats, nickName, storedAs }) {
    const { uid, name } = notified(server);
    return uid ? uid === chats.me : [nickName, storedAs].some((own) => own.toLowerCase() === name);
}

/**
 * @param {string} server
 * @param {import("./account.js").Account} account
 */
function notify(server, { chats, nickName }) {
    localStorage.setItem(key(server), JSON.stringify({ uid: chats.me, name: nickName }));
}

/** The server's key for notifications; empty if the server sends none. */
async function publicKey() {
    const response = await fetch("push.json").catch(() => null);
    const found = response?.ok ? await response.json().catch(() => null) : null;
    return typeof found?.publicKey === "string" ? found.publicKey : "";
}

/**
 * @param {string} server
 * @param {import("./account.js").Account} account
 * @returns {Promise<PushState>}
 */
async function stateOf(server, account) {
    if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return "unsupported";
    if (!(await publicKey())) return "unavailable";
    if (Notification.permission === "denied") return "blocked";
    const registration = await navigator.serviceWorker.getRegistration();
    const isSubscribed = Boolean(await registration?.pushManager.getSubscription());
    if (!isSubscribed || Notification.permission !== "granted") return "off";
    return isNotified(server, account) ? "on" : "off";
}

/**
 * Registers the browser's subscription again at each login of an account, because subscriptions end. If the account is
 * already logged in, also registers it now.
 *
 * @param {import("./account.js").Account} account
 * @param {string} server
 */
export function renewPushes(account, server) {
    const { client } = account;
    const renew = async () => {
        if (!isNotified(server, account) || globalThis.Notification?.permission !== "granted") return;
        notify(server, account);
        const found = await publicKey();
        if (found) await enablePush(client, { publicKey: found, worker });
    };
    client.on("session", () => renew().catch(() => {}));
    if (client.session) renew().catch(() => {});
}

/**
 * Ends the notifications of an account that leaves this browser.
 *
 * @param {import("./account.js").Account} account
 * @param {string} server
 */
export async function endPushes(account, server) {
    if (!isNotified(server, account)) return;
    localStorage.removeItem(key(server));
    await disablePush(account.client);
}

/**
 * Shows the dialog that switches the notifications of this browser.
 *
 * @param {import("./account.js").Account} account
 * @param {string} server
 */
export function showPushes(account, server) {
    const words = h("p", { class: "push-state", role: "status" });
    const place = h("p", { class: "actions" });
    const element = dialog(t("pushes"), words, place);
    const error = /** @type {HTMLElement} */ (element.querySelector(".error"));
    const show = async () => {
        const state = await stateOf(server, account);
        const other = state === "off" && !isNotified(server, account) ? notified(server).name : "";
        words.textContent = other ? t("push_other", other) : t(`push_${state}`);
        words.dataset.state = state;
        const act = (/** @type {() => Promise<any>} */ action) => async () => {
            next.disabled = true;
            await attempt(error, action);
            await show();
        };
        const turnOn = async () => {
            if (await enablePush(account.client, { publicKey: await publicKey(), worker })) notify(server, account);
        };
        const turnOff = () => endPushes(account, server);
        const next = state === "on" ? button(t("turnOff"), act(turnOff)) : button(t("turnOn"), act(turnOn));
        const hadFocus = place.contains(document.activeElement);
        place.replaceChildren(...(state === "on" || state === "off" ? [next] : []));
        if (hadFocus) (place.querySelector("button") ?? element.querySelector("button"))?.focus();
    };
    attempt(error, show);
}
