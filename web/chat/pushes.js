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

/** The accounts of this browser that it notifies of: they share one subscription. */
function notified(/** @type {string} */ server) {
    try {
        const names = JSON.parse(localStorage.getItem(key(server)) ?? "[]");
        return new Set(Array.isArray(names) ? names.filter((name) => typeof name === "string") : []);
    } catch {
        return new Set();
    }
}

/**
 * @param {string} server
 * @param {string} name
 * @param {boolean} isOn
 * @returns {number} How many accounts there are now.
 */
function note(server, name, isOn) {
    const names = notified(server);
    if (isOn) names.add(name.toLowerCase());
    else names.delete(name.toLowerCase());
    localStorage.setItem(key(server), JSON.stringify([...names]));
    return names.size;
}

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
    return notified(server).has(name.toLowerCase()) ? "on" : "off";
}

/**
 * An account logged in: registers the browser's subscription again, because subscriptions end.
 *
 * @param {import("./account.js").Account} account
 * @param {string} server
 */
export async function renewPushes({ client, nickName }, server) {
    if (!notified(server).has(nickName.toLowerCase()) || globalThis.Notification?.permission !== "granted") return;
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
    if (!notified(server).has(nickName.toLowerCase())) return;
    if (note(server, nickName, false) > 0) await client.clearPush();
    else await disablePush(client);
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
        words.textContent = t(`push_${state}`);
        words.dataset.state = state;
        const act = (/** @type {() => Promise<any>} */ action) => async () => {
            next.disabled = true;
            await attempt(error, action);
            await show();
        };
        const turnOn = async () => {
            if (await enablePush(account.client, { publicKey: await publicKey(), worker })) {
                note(server, account.nickName, true);
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
