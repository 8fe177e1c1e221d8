// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import Testing

@testable import HermesCLI

@Suite struct TokenCacheTests {
    @Test func `tokens are kept for their account, server and device, readable by the user alone`() throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("hermes-cache-\(UInt64.random(in: 0...UInt64.max))")
        defer { try? FileManager.default.removeItem(at: directory) }
        let cache = TokenCache(directory: directory)
        let server = ServerAddress(host: "chat.example", port: 9000)
        let entry = TokenCache.Entry(uid: 7, device: "d", token: "secret")
        try cache.store(entry, name: "Ann/../x", server: server)
        #expect(cache.entry(name: "ann/../x", server: server, device: "d") == entry)
        #expect(cache.entry(name: "ann", server: server, device: "d") == nil)
        #expect(cache.entry(name: "ann/../x", server: server, device: "e") == nil)
        let other = ServerAddress(host: "chat.example", port: 9001)
        #expect(cache.entry(name: "ann/../x", server: other, device: "d") == nil)
        let file = cache.file("Ann/../x", server, "d")
        #expect(file.deletingLastPathComponent() == directory.appendingPathComponent("tokens"))
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        cache.remove(name: "Ann/../x", server: server, device: "d")
        #expect(cache.entry(name: "Ann/../x", server: server, device: "d") == nil)
    }

    @Test func `the device is chosen once`() {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("hermes-cache-\(UInt64.random(in: 0...UInt64.max))")
        defer { try? FileManager.default.removeItem(at: directory) }
        let first = TokenCache(directory: directory).deviceID()
        #expect(first.hasPrefix("cli-"))
        #expect(TokenCache(directory: directory).deviceID() == first)
    }

    @Test func `the folder follows XDG`() {
        #expect(TokenCache.userDirectory(environment: ["XDG_CONFIG_HOME": "/x"]).path == "/x/hermes")
        #expect(TokenCache.userDirectory(environment: ["HOME": "/home/ann"]).path == "/home/ann/.config/hermes")
    }
}
