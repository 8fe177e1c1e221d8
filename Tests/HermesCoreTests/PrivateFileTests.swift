// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import Testing

struct PrivateFileTests {
    @Test
    func `a file is the owner's alone, and one that is there is not touched`() throws {
        let path = NSTemporaryDirectory() + "/hermes-private-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(PrivateFile.create(path, contents: [1, 2, 3]))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(!PrivateFile.create(path, contents: [4]))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1, 2, 3]))
        #expect(!PrivateFile.create(path + "/below"))
        #expect(PrivateFile.failureToCreate(path) == EEXIST)
        #expect(PrivateFile.failureToCreate(path + ".missing/below") == ENOENT)
    }

    @Test
    func `a file that is replaced is the owner's alone from then on`() throws {
        let path = NSTemporaryDirectory() + "/hermes-private-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data([1]).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        // This file was left by an earlier process.
        try Data([2]).write(to: URL(fileURLWithPath: path + ".new"))
        #expect(PrivateFile.replace(path, contents: [3, 4]))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([3, 4]))
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
        #expect(!PrivateFile.replace(path + "/below", contents: []))
    }
}
