// Hermes
// SPDX-License-Identifier: Apache-2.0

// Puts a live room into a page of another host, in the place of its `script` element. No module: a page that uses it
// has one line, `<script src="https://HOST/room/embed.js" data-room="lobby" data-theme="dark" async></script>`.
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
    // The room cannot lead the page elsewhere; its link opens a tab of its own.
    frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox");
    // Properties, which a page's policy allows where it forbids attributes.
    Object.assign(frame.style, { display: "block", width: "100%", height, border: "0", colorScheme: "auto" });
    script.after(frame);
}
