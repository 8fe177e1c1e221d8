// Hermes
// SPDX-License-Identifier: Apache-2.0

// What the page and its service worker tell each other of notifications.

/**
 * The entry that a notification tells of, see docs/push.md.
 *
 * @typedef {object} Reference
 * @property {string} key The conversation's, as in `Chats`; that of the notices for a back end's push.
 * @property {number} uid The account that got it; 0: unknown.
 */

/** The notices: a conversation with nobody. */
const notices = "uid 0";
/** For how long the worker waits for a page, in milliseconds: somebody waits for the notification. */
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
 * The address of the page that shows an entry, for a page that is opened.
 *
 * @param {any} hermes
 */
export function addressOf(hermes) {
    const { key, uid } = referenceOf(hermes);
    return `./${mark}${uid}/${key.replace(" ", "/")}`;
}

/**
 * What an opened page is to show.
 *
 * @param {string} hash That of the page's address.
 * @returns {Reference | null}
 */
export function addressed(hash) {
    const [, uid, kind, number] = /^#notification\/(\d{1,10})\/(uid|group)\/(\d{1,10})$/.exec(hash) ?? [];
    return kind ? { key: `${kind} ${Number(number)}`, uid: Number(uid) } : null;
}

/**
 * Asks a page whether it shows an entry's account. One that does not answer shows nothing.
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
 * Answers the worker, and follows the clicks.
 *
 * @param {any} container `navigator.serviceWorker`; undefined where there is none.
 * @param {(uid: number) => boolean} shows Whether the page shows this account; 0: any.
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
