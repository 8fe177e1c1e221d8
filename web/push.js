// Hermes
// SPDX-License-Identifier: Apache-2.0

/** @param {string} text base64url. */
function bytesOf(text) {
    const base64 = text.replace(/-/g, "+").replace(/_/g, "/");
    return Uint8Array.from(atob(base64), (digit) => digit.charCodeAt(0));
}

/**
 * Subscribes this browser to notifications and registers it with the server, which notifies it while it is not
 * connected. Call it from a click: the browser asks the user. Call it again at each start: subscriptions end.
 *
 * @param {import("./api.js").Requests} client
 * @param {object} options
 * @param {string} options.publicKey The server's `push.webPush.publicKey`.
 * @param {string} [options.worker] The URL of the service worker; its folder is what it may notify about.
 * @returns {Promise<boolean>} Whether the user allowed it.
 */
export async function enablePush(client, { publicKey, worker = "service-worker.js" }) {
    if ((await Notification.requestPermission()) !== "granted") return false;
    const registration = await navigator.serviceWorker.register(worker, { type: "module" });
    await navigator.serviceWorker.ready;
    const applicationServerKey = bytesOf(publicKey);
    let subscription = await registration.pushManager.getSubscription();
    const known = subscription?.options.applicationServerKey;
    if (subscription && known && String(new Uint8Array(known)) !== String(applicationServerKey)) {
        // The server has another key since.
        await subscription.unsubscribe();
        subscription = null;
    }
    subscription ??= await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
    await client.registerPush(subscription);
    return true;
}

/**
 * Ends the notifications of this browser.
 *
 * @param {import("./api.js").Requests} client
 */
export async function disablePush(client) {
    const registration = await navigator.serviceWorker.getRegistration();
    const subscription = await registration?.pushManager.getSubscription();
    try {
        await client.clearPush();
    } finally {
        // Without the server, too: what it sends then comes back to it, and it forgets the subscription.
        await subscription?.unsubscribe();
    }
}
