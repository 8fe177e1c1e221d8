// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("Owners and permissions of the data directory", .inTurns)
struct DirectoryOwnerTests {
    /// The id of a user that owns no files on this machine.
    private static let service = 54_321

    /// Whether this process may give files to other users.
    static let isRoot = geteuid() == 0

    @Test(.enabled(if: isRoot))
    func `what root creates in the directory of a service belongs to the service`() async throws {
        let directory = try TemporaryDirectory()
        try #require(chown(directory.path, uid_t(Self.service), gid_t(Self.service)) == 0)
        let store = try directory.openStore()
        _ = try await StoreWorld(store: store)
        func expectOwner() throws {
            let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
            #expect(names.contains("hermes.db") && names.contains("hermes.lock") && names.contains("hermes.run"))
            for name in names {
                let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + "/" + name)
                #expect((attributes[.ownerAccountID] as? NSNumber)?.intValue == Self.service, "\(name)")
            }
        }
        try expectOwner()
        try store.close()
        try expectOwner()
    }

    @Test(.enabled(if: isRoot))
    func `a file that a link in the directory leads to keeps its owner`() throws {
        let directory = try TemporaryDirectory()
        let elsewhere = try TemporaryDirectory()
        try Data().write(to: URL(fileURLWithPath: elsewhere.path + "/file"))
        try FileManager.default.createSymbolicLink(
            atPath: directory.path + "/hermes.lock",
            withDestinationPath: elsewhere.path + "/file"
        )
        try #require(chown(directory.path, uid_t(Self.service), gid_t(Self.service)) == 0)
        try directory.openStore().close()
        let attributes = try FileManager.default.attributesOfItem(atPath: elsewhere.path + "/file")
        #expect((attributes[.ownerAccountID] as? NSNumber)?.intValue == 0)
    }

    @Test
    func `what prevents a directory is named`() throws {
        let parent = try TemporaryDirectory()
        let file = parent.path + "/file"
        try Data().write(to: URL(fileURLWithPath: file))
        for path in [file, file + "/data"] {
            let error = #expect(throws: StoreOpenError.self) {
                try SQLiteStore.open(directory: path, logger: TemporaryDirectory.silent)
            }
            #expect(error?.message.contains("\"\(file)\" is not a directory") == true, "\(path)")
        }
    }
}
