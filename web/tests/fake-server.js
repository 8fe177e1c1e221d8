// Hermes
// SPDX-License-Identifier: Apache-2.0

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { encodeFrame, FrameDecoder } from "../node-websocket.js";

/**
 * A WebSocket server whose answers the test writes. It listens on a free port of the loopback address.
 *
 * It accepts all logins. `session` is the answer, or a function that returns the answer. If it is null, the server does
 * not answer. Other packets go to `handler(packet, connection)`.
 */
export class FakeServer {
    session = { uid: 1, nickName: "ann", token: "t", epoch: "9", headSeq: "0", acknowledgedSeq: "0" };
    /** The packets that have arrived, on all connections. */
    packets = [];
    connections = [];
    handler = () => {};
    #waiters = [];

    static async start() {
        const server = new FakeServer();
        server.http = createServer((_request, response) => response.writeHead(404).end());
        server.http.on("upgrade", (request, socket) => server.#upgraded(request, socket));
        await new Promise((resolve) => server.http.listen(server.port ?? 0, "127.0.0.1", resolve));
        server.port = server.http.address().port;
        return server;
    }

    get url() {
        return `ws://127.0.0.1:${this.port}`;
    }

    stop() {
        for (const { socket } of this.connections) socket.destroy();
        this.http.close();
    }

    /**
     * Waits until `condition` returns a value, and returns this value. `condition` is called again after each packet.
     */
    until(condition) {
        return new Promise((resolve) => {
            this.#waiters.push({ condition, resolve });
            this.#ask();
        });
    }

    /** Waits for the first packet with this body. */
    async packet(body, skip = 0) {
        return this.until(() => this.packets.filter((packet) => packet[body])[skip]);
    }

    #ask() {
        this.#waiters = this.#waiters.filter(({ condition, resolve }) => {
            const value = condition();
            if (value) resolve(value);
            return !value;
        });
    }

    #upgraded(request, socket) {
        const key = request.headers["sec-websocket-key"];
        const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
        const protocol = request.headers["sec-websocket-protocol"];
        socket.write(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
                `Sec-WebSocket-Accept: ${accept}\r\n${protocol ? `Sec-WebSocket-Protocol: ${protocol}\r\n` : ""}\r\n`,
        );
        const decoder = new FrameDecoder(true);
        const connection = {
            socket,
            send: (packet) => socket.write(encodeFrame(1, Buffer.from(JSON.stringify(packet)), false)),
            sendBytes: (bytes) => socket.write(bytes),
            close: (code) => socket.end(encodeFrame(8, Buffer.from([code >> 8, code & 255]), false)),
        };
        this.connections.push(connection);
        socket.on("error", () => {});
        socket.on("data", (chunk) => {
            decoder.push(chunk);
            for (let frame; (frame = decoder.next()); ) {
                if (frame.opcode !== 1) continue;
                const packet = JSON.parse(frame.payload.toString());
                this.packets.push(packet);
                if (packet.authenticate || packet.register) {
                    const answer = typeof this.session === "function" ? this.session(packet) : this.session;
                    if (answer) connection.send({ id: packet.id, result: answer.error ? answer : { session: answer } });
                } else this.handler(packet, connection);
            }
            this.#ask();
        });
        this.#ask();
    }
}
