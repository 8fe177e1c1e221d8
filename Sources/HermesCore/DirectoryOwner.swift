// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Changes the owner of files that root creates to the owner of their directory. Otherwise a command that root runs in
/// the data directory of a service would leave files that the service cannot open.
package enum DirectoryOwner {
    /// Opens a file in a directory, or creates the file with mode 0600 if it does not exist.
    ///
    /// - Returns: the descriptor, or -1 with the reason in `errno`.
    package static func openFile(_ path: String, in directory: String, _ flags: Int32) -> Int32 {
        // Only a file that this call creates gets a new owner. Otherwise the directory's owner could put a link to
        // another file at this path, and would become the owner of that file.
        let new = open(path, flags | O_CREAT | O_EXCL, 0o600)
        guard new >= 0 else { return errno == EEXIST ? open(path, flags | O_CREAT, 0o600) : new }
        give(new, toOwnerOf: directory)
        return new
    }

    /// Changes the owner of a new file to the owner of its directory, if this process runs as root.
    package static func give(_ descriptor: Int32, toOwnerOf directory: String) {
        guard geteuid() == 0 else { return }
        let path = URL(fileURLWithPath: directory).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        guard let owner = attributes?[.ownerAccountID] as? NSNumber, owner.uint32Value != 0,
            let group = attributes?[.groupOwnerAccountID] as? NSNumber
        else { return }
        // Some file systems do not allow a change of the owner. The file then still belongs to root.
        _ = fchown(descriptor, owner.uint32Value, group.uint32Value)
    }
}
