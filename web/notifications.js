// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * What a service worker shows for a push of the server (docs/push.md): `{ title, body, badge, tag, hermes, data }`.
 * A push that cannot be read still shows something, because browsers require it.
 *
 * @param {string | undefined} text The push's data.
 * @param {string} fallback The title without a readable one.
 * @returns {{ title: string, options: NotificationOptions & { renotify?: boolean }, badge: number | null }}
 */
export function notificationOf(text, fallback) {
    /** @type {any} */
    let push = {};
    try {
        push = JSON.parse(text ?? "") ?? {};
    } catch {
        // Shown without words.
    }
    const word = (/** @type {unknown} */ value) => (typeof value === "string" ? value : "");
    const tag = word(push.tag);
    const data = { hermes: push.hermes, data: push.data };
    const options = { body: word(push.body), tag, renotify: tag !== "", data };
    return { title: word(push.title) || fallback, options, badge: Number.isInteger(push.badge) ? push.badge : null };
}

/**
 * Makes a service worker show the server's pushes. A page that has the focus shows its messages itself. A click brings
 * the app to the front and posts `{ type: "hermes.notification", hermes, data }` to it.
 *
 * @param {any} worker The service worker's `self`.
 * @param {{ page?: string, title?: string }} options `page` is opened by a click where no page is open.
 */
export function showNotifications(worker, { page = "./", title = "Hermes" } = {}) {
    const pages = () => worker.clients.matchAll({ type: "window", includeUncontrolled: true });
    const show = async (/** @type {string | undefined} */ text) => {
        const notification = notificationOf(text, title);
        const isSeen = (await pages()).some((/** @type {any} */ page) => page.focused);
        if (notification.badge !== null) await worker.navigator.setAppBadge?.(notification.badge).catch(() => {});
        if (!isSeen) await worker.registration.showNotification(notification.title, notification.options);
    };
    const open = async (/** @type {any} */ data) => {
        const [first] = await pages();
        const target = first ?? (await worker.clients.openWindow(page));
        await first?.focus();
        target?.postMessage({ type: "hermes.notification", ...data });
    };
    worker.addEventListener("push", (/** @type {any} */ event) => event.waitUntil(show(event.data?.text())));
    worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
        event.notification.close();
        event.waitUntil(open(event.notification.data));
    });
}
