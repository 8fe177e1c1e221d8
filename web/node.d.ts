// Hermes
// SPDX-License-Identifier: Apache-2.0

// The declarations of the part of Node that node-*.js uses, for the type checker. Node's own declarations would be a
// dependency of 2 MB.

declare module "node:buffer" {
    export interface Buffer extends Uint8Array {
        subarray(start?: number, end?: number): Buffer;
        copy(target: Uint8Array, targetStart?: number): number;
        readUInt16BE(offset: number): number;
        readBigUInt64BE(offset: number): bigint;
        writeUInt16BE(value: number, offset: number): number;
        writeBigUInt64BE(value: bigint, offset: number): number;
        toString(encoding?: "base64" | "utf8"): string;
    }
    export const Buffer: {
        alloc(size: number): Buffer;
        from(source: string | Uint8Array): Buffer;
        concat(parts: Uint8Array[]): Buffer;
    };
}

declare module "node:crypto" {
    import { Buffer } from "node:buffer";
    interface Hash {
        update(data: string): Hash;
        digest(encoding: "hex" | "base64"): string;
    }
    export function createHash(algorithm: "sha1" | "sha256"): Hash;
    export function randomBytes(size: number): Buffer;
}

declare module "node:fs/promises" {
    export interface FileHandle {
        appendFile(data: string): Promise<void>;
        writeFile(data: string): Promise<void>;
        datasync(): Promise<void>;
        close(): Promise<void>;
    }
    export function open(path: string, flags: "a" | "w", mode: number): Promise<FileHandle>;
    export function readFile(path: string, encoding: "utf8"): Promise<string>;
    export function rename(from: string, to: string): Promise<void>;
}

declare module "node:net" {
    import { Buffer } from "node:buffer";
    export interface Socket {
        readonly writableLength: number;
        write(data: Uint8Array): boolean;
        end(): Socket;
        destroy(): Socket;
        setNoDelay(isOn: boolean): Socket;
        setTimeout(milliseconds: number): Socket;
        on(event: "data", listener: (chunk: Buffer) => void): Socket;
        on(event: "error", listener: (error: Error) => void): Socket;
        on(event: "close", listener: () => void): Socket;
    }
}

declare module "node:tls" {
    export interface ConnectionOptions {
        ca?: string | Uint8Array;
        cert?: string | Uint8Array;
        key?: string | Uint8Array;
        rejectUnauthorized?: boolean;
        servername?: string;
    }
}

declare module "node:http" {
    import { Buffer } from "node:buffer";
    import { Socket } from "node:net";
    interface Answer {
        readonly statusCode?: number;
        readonly headers: Record<string, string | undefined>;
        destroy(): void;
    }
    export interface RequestOptions {
        host: string;
        port: string | number;
        path: string;
        headers: Record<string, string>;
    }
    export interface ClientRequest {
        on(event: "upgrade", listener: (response: Answer, socket: Socket, head: Buffer) => void): ClientRequest;
        on(event: "response", listener: (response: Answer) => void): ClientRequest;
        on(event: "error", listener: (error: Error) => void): ClientRequest;
        end(): ClientRequest;
        destroy(): ClientRequest;
    }
    export function request(options: RequestOptions): ClientRequest;
}

declare module "node:https" {
    import { ClientRequest, RequestOptions } from "node:http";
    import { ConnectionOptions } from "node:tls";
    export function request(options: RequestOptions & ConnectionOptions): ClientRequest;
}

declare module "node:timers" {
    interface Timeout {
        unref(): Timeout;
    }
    export function setTimeout(callback: () => void, milliseconds: number): Timeout;
    export function setImmediate(callback: () => void): unknown;
}
