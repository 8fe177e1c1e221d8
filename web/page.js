// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The URL to connect to. The scheme http becomes ws. If there is no path, the path is /ws.
 *
 * @param {string} server
 */
export function serverURL(server) {
    const url = new URL(server);
    url.protocol = url.protocol.replace("http", "ws");
    if (url.pathname === "/") url.pathname = "/ws";
    return url.href;
}

/** The name of the platform, for the list of devices. */
export function platform() {
    const { navigator, process } = /** @type {any} */ (globalThis);
    if (process?.versions?.node) return `Node ${process.versions.node}`;
    const name = /(Edg|OPR|Firefox|Chrome|Safari)\/\d+(?!.*(Edg|OPR))/.exec(navigator?.userAgent);
    return name?.[0].replace("/", " ") ?? "Web";
}

/**
 * Follows the page's visibility and the browser's network state.
 *
 * @param {string} url The server's URL.
 * @param {(conditions: { app?: "foreground" | "background" | "suspended", isOnline?: boolean }) => void} changed
 * @returns {() => void} Stops following.
 */
export function followPage(url, changed) {
    const { document, addEventListener, removeEventListener, navigator } = globalThis;
    if (!document || !addEventListener) return () => {};
    // Without a network, the browser reports "offline", but a server on this machine can still be reached.
    const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
    let isAway = false;
    const look = () => {
        // If the browser suspends the page, the event for the suspension comes first. The event for the hidden page
        // follows and is ignored.
        if (isAway) return;
        const app = document.visibilityState === "hidden" ? "background" : "foreground";
        changed({ app, isOnline: isLocal || navigator.onLine !== false });
    };
    const freeze = () => {
        isAway = true;
        changed({ app: "suspended" });
    };
    const back = () => {
        isAway = false;
        look();
    };
    const names = ["online", "offline"];
    for (const name of names) addEventListener(name, look);
    addEventListener("pageshow", back);
    addEventListener("pagehide", freeze);
    document.addEventListener("visibilitychange", look);
    document.addEventListener("resume", back);
    document.addEventListener("freeze", freeze);
    look();
    return () => {
        for (const name of names) removeEventListener(name, look);
        removeEventListener("pageshow", back);
        removeEventListener("pagehide", freeze);
        document.removeEventListener("visibilitychange", look);
        document.removeEventListener("resume", back);
        document.removeEventListener("freeze", freeze);
    };
}
