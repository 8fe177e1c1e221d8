// Hermes
// SPDX-License-Identifier: Apache-2.0

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The server's program. If it is empty, tests with a real server are skipped. */
export const program = process.env.HERMES_BIN ?? "";

/** A real server with its own data directory. After a restart, it has the same port. */
export class RealServer {
    port = 0;
    #settings;
    #process = null;

    constructor(settings) {
        this.#settings = settings;
    }

    /** Starts a server on free ports; `settings` are added to its command line. */
    static async start(settings = {}) {
        const server = new RealServer(settings);
        server.folder = await mkdtemp(join(tmpdir(), "hermes-web-"));
        await server.restart();
        return server;
    }

    get url() {
        return `ws://127.0.0.1:${this.port}`;
    }

    async restart() {
        const settings = {
            "data.directory": join(this.folder, "data"),
            "listeners.http.port": this.port,
            "listeners.impb.enabled": false,
            "listeners.liveroom.enabled": false,
            "listeners.qsiop.enabled": false,
            "listeners.delimited.enabled": false,
            "listeners.mqtt.enabled": false,
            ...this.#settings,
        };
        const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, String(value)]);
        const child = spawn(program, ["serve", ...args], { stdio: ["ignore", "pipe", "pipe"] });
        this.#process = child;
        let output = "";
        await new Promise((resolve, reject) => {
            const read = (chunk) => {
                output = (output + chunk).slice(-65_536);
                const ready = /^hermes .* ready:.*http\D*[^ ]*:(\d+)/im.exec(output);
                if (!ready) return;
                this.port = Number(ready[1]);
                resolve();
            };
            child.stdout.on("data", read);
            child.stderr.on("data", read);
            child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${output}`)));
        });
    }

    /** Ends the process without notice, as a crash does. */
    async kill(signal = "SIGKILL") {
        const child = this.#process;
        this.#process = null;
        if (!child || child.exitCode !== null || child.signalCode !== null) return;
        const ended = new Promise((resolve) => child.once("exit", resolve));
        child.kill(signal);
        await ended;
    }

    async stop() {
        await this.kill();
        await rm(this.folder, { recursive: true, force: true });
    }
}
