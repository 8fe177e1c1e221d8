// Hermes
// SPDX-License-Identifier: Apache-2.0

import { disablePush, enablePush } from "../hermes.js";
import { attempt, dialog } from "./dom.js";
import { button, h } from "../dom.js";
import { t } from "./i18n.js";

/**
 * Whether this browser notifies of an account's messages.
 *
 * @typedef {"unsupported" | "unavailable" | "blocked" | "off" | "on"} PushState `unavailable`: the server has no key.
 */

const worker = "worker.js";
const key = (/** @type {string} */ server) => `hermes-chat/pushes ${server}`;

/**
 * The account that this browser notifies of, in lower case; empty: none. It has one subscription, which the server keeps
 * for one device, the last that registered it.
 *
 * @param {string} server
 */
const notified = (server) => localStorage.getItem(key(server)) ?? "";

/** @param {string} server */
const isNotified = (server, /** @type {string} */ name) => notified(server) === name.toLowerCase();

/** The server's key for notifications; empty: it sends none. */
async function publicKey() {
    const response = await fetch("push.json").catch(() => null);
    const found = response?.ok ? await response.json().catch(() => null) : null;
    return typeof found?.publicKey === "string" ? found.publicKey : "";
}

/**
 * @param {string} server
 * @param {string} name
 * @returns {Promise<PushState>}
 */
async function stateOf(server, name) {
    if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return "unsupported";
    if (!(await publicKey())) return "unavailable";
    if (Notification.permission === "denied") return "blocked";
    const registration = await navigator.serviceWorker.getRegistration();
    const isSubscribed = Boolean(await registration?.pushManager.getSubscription());
    if (!isSubscribed || Notification.permission !== "granted") return "off";
    return isNotified(server, name) ? "on" : "off";
}

/**
 * An account logged in: registers the browser's subscription again, because subscriptions end.
 *
 * @param {import("./account.js").Account} account
 * @param {string} server
 */
export async function renewPushes({ client, nickName }, server) {
    if (!isNotified(server, nickName) || globalThis.Notification?.permission !== "granted") return;
    const found = await publicKey();
    if (found) await enablePush(client, { publicKey: found, worker });
}

/**
 * An account leaves this browser: its notifications end.
 *
 * @param {import("./account.js").Account} account
 * @param {string} server
 */
export async function endPushes({ client, nickName }, server) {
    if (!isNotified(server, nickName)) return;
    localStorage.removeItem(key(server));
    await disablePush(client);
}

/**
 * Switches the notifications of this browser.
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
        const state = await stateOf(server, account.nickName);
        const other = state === "off" ? notified(server) : "";
        words.textContent = other ? t("push_other", other) : t(`push_${state}`);
        words.dataset.state = state;
        const act = (/** @type {() => Promise<any>} */ action) => async () => {
            next.disabled = true;
            await attempt(error, action);
            await show();
        };
        const turnOn = async () => {
            if (await enablePush(account.client, { publicKey: await publicKey(), worker })) {
                localStorage.setItem(key(server), account.nickName.toLowerCase());
            }
        };
        const turnOff = () => endPushes(account, server);
        const next = state === "on" ? button(t("turnOff"), act(turnOff)) : button(t("turnOn"), act(turnOn));
        const hadFocus = place.contains(document.activeElement);
        place.replaceChildren(...(state === "on" || state === "off" ? [next] : []));
        if (hadFocus) (place.querySelector("button") ?? element.querySelector("button"))?.focus();
    };
    attempt(error, show);
}
