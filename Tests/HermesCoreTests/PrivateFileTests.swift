// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import Testing

struct PrivateFileTests {
    @Test("A file is the owner's alone, and one that is there is not touched")
    func create() throws {
        let path = NSTemporaryDirectory() + "/hermes-private-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(PrivateFile.create(path, contents: [1, 2, 3]))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(!PrivateFile.create(path, contents: [4]))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1, 2, 3]))
        #expect(!PrivateFile.create(path + "/below"))
    }
}
