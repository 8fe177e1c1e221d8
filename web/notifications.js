// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The notification that a service worker shows for a push of the server (docs/push.md):
 * `{ title, body, badge, tag, hermes, data }`. There is a notification even if the push cannot be read, because
 * browsers require one.
 *
 * @param {string | undefined} text The push's data.
 * @param {string} fallback The title if the push has no readable title.
 * @returns {{ title: string, options: NotificationOptions & { renotify?: boolean }, badge: number | null }}
 */
export function notificationOf(text, fallback) {
    /** @type {any} */
    let push = {};
    try {
        push = JSON.parse(text ?? "") ?? {};
    } catch {
        // The notification has no text.
    }
    const word = (/** @type {unknown} */ value) => (typeof value === "string" ? value : "");
    const tag = word(push.tag);
    const data = { hermes: push.hermes, data: push.data };
    const options = { body: word(push.body), tag, renotify: tag !== "", data };
    return { title: word(push.title) || fallback, options, badge: Number.isInteger(push.badge) ? push.badge : null };
}

/**
 * Makes a service worker show the server's pushes. There is no notification if the page with the focus shows the
 * message itself. A click brings the app to the front and posts `{ type: "hermes.notification", hermes, data }` to it.
 * Pages outside the worker's scope belong to other apps.
 *
 * @param {any} worker The service worker's `self`.
 * @param {object} options
 * @param {string | ((hermes: any) => string)} [options.page] The address that a click opens if no page is open.
 * @param {string} [options.title] The title for a push without a title.
 * @param {(page: any, hermes: any) => boolean | Promise<boolean>} [options.shows] Whether a page shows an entry, for
 *   apps with several accounts. By default, each page shows all entries.
 */
export function showNotifications(worker, { page = "./", title = "Hermes", shows = () => true } = {}) {
    const pages = async () => {
        const all = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
        return all.filter((/** @type {any} */ one) => one.url.startsWith(worker.registration.scope));
    };
    /** The first page that shows an entry. */
    const showing = async (/** @type {any[]} */ all, /** @type {any} */ hermes) => {
        const answers = await Promise.all(all.map((one) => shows(one, hermes)));
        return all.find((_, index) => answers[index]);
    };
    const show = async (/** @type {string | undefined} */ text) => {
        const { title: words, options, badge } = notificationOf(text, title);
        const focused = (await pages()).filter((/** @type {any} */ one) => one.focused);
        if (await showing(focused, options.data.hermes)) return;
        if (badge !== null) await worker.navigator.setAppBadge?.(badge).catch(() => {});
        await worker.registration.showNotification(words, options);
    };
    const open = async (/** @type {any} */ data) => {
        const all = await pages();
        const known = (await showing(all, data?.hermes)) ?? all[0];
        // A browser may refuse to move the focus. The page still gets the message.
        await known?.focus().catch(() => {});
        const address = typeof page === "string" ? page : page(data?.hermes);
        const target = known ?? (await worker.clients.openWindow(address));
        target?.postMessage({ type: "hermes.notification", ...data });
    };
    worker.addEventListener("push", (/** @type {any} */ event) => event.waitUntil(show(event.data?.text())));
    worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
        event.notification.close();
        event.waitUntil(open(event.notification.data));
    });
}
