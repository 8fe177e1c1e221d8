// Hermes
// SPDX-License-Identifier: Apache-2.0

// Puts a live room into a page of another host, in the place of its `script` element. This script is not a module, so
// that a page needs only one line: `<script src="https://HOST/room/embed.js" data-room="lobby" data-theme="dark"
// async></script>`.
{
    const script = /** @type {HTMLScriptElement} */ (document.currentScript);
    const { room = "lobby", theme = "", lang = "", label = `Live room ${room}`, height = "28rem" } = script.dataset;
    const address = new URL("./", script.src);
    for (const [name, value] of Object.entries({ room, theme, lang })) {
        if (value) address.searchParams.set(name, value);
    }
    const frame = document.createElement("iframe");
    frame.src = address.href;
    frame.title = label;
    // The room cannot navigate the page to another address. Its link opens a new tab.
    frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox");
    // Style properties are set, because a page's policy may forbid style attributes.
    Object.assign(frame.style, { display: "block", width: "100%", height, border: "0", colorScheme: "auto" });
    script.after(frame);
}
