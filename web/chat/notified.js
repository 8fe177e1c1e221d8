// Hermes
// SPDX-License-Identifier: Apache-2.0

// The messages about notifications between the page and its service worker.

/**
 * The inbox entry that a notification announces (docs/push.md).
 *
 * @typedef {object} Reference
 * @property {string} key The key of the conversation, as in `Chats`. For a back end's push, it is the key of the
 *   notices.
 * @property {number} uid The account that received the entry; 0 if it is unknown.
 */

/** The key of the notices, which are a conversation with uid 0. */
const notices = "uid 0";
/**
 * The time that the worker waits for a page's answer, in milliseconds. It is short, because it delays the notification.
 */
const patience = 500;
const mark = "#notification/";

/**
 * @param {any} hermes
 * @returns {Reference}
 */
export function referenceOf(hermes) {
    const [, kind, number] = /^(direct|group)\/(\d{1,10})$/.exec(hermes?.conversation) ?? [];
    const key = number ? `${kind === "group" ? "group" : "uid"} ${Number(number)}` : notices;
    return { key, uid: Number.isSafeInteger(hermes?.uid) ? hermes.uid : 0 };
}

/**
 * The address to open for a page that shows an entry.
 *
 * @param {any} hermes
 */
export function addressOf(hermes) {
    const { key, uid } = referenceOf(hermes);
    return `./${mark}${uid}/${key.replace(" ", "/")}`;
}

/**
 * The entry that an opened page has to show.
 *
 * @param {string} hash The hash of the page's address.
 * @returns {Reference | null}
 */
export function addressed(hash) {
    const [, uid, kind, number] = /^#notification\/(\d{1,10})\/(uid|group)\/(\d{1,10})$/.exec(hash) ?? [];
    return kind ? { key: `${kind} ${Number(number)}`, uid: Number(uid) } : null;
}

/**
 * Asks a page whether it shows an entry's account. A page that does not answer counts as not showing the account.
 *
 * @param {any} page A client of the worker.
 * @param {any} hermes
 * @returns {Promise<boolean>}
 */
export function asks(page, hermes) {
    return new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        const answer = (/** @type {boolean} */ isShown) => {
            clearTimeout(timer);
            port1.close();
            resolve(isShown);
        };
        const timer = setTimeout(() => answer(false), patience);
        port1.onmessage = ({ data }) => answer(data === true);
        page.postMessage({ type: "hermes.shows", hermes }, [port2]);
    });
}

/**
 * Answers the worker, and opens the entries of clicked notifications.
 *
 * @param {any} container `navigator.serviceWorker`; undefined if there is none.
 * @param {(uid: number) => boolean} shows Whether the page shows this account; 0 stands for any account.
 * @param {(reference: Reference) => any} open
 */
export function follow(container, shows, open) {
    container?.addEventListener("message", (/** @type {any} */ { data, ports }) => {
        const reference = referenceOf(data?.hermes);
        if (data?.type === "hermes.shows") ports[0]?.postMessage(shows(reference.uid));
        if (data?.type === "hermes.notification") open(reference);
    });
    container?.startMessages?.();
}
