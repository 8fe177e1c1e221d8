// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore

/// The key of reconnect tickets. It must outlive the server, because a server gives out tickets when it stops.
enum TicketKey {
    private static let fileName = "reconnect.key"

    /// Returns the key in the data directory, and creates it on first use.
    ///
    /// - Returns: nil if the key can be neither read nor created. Tickets then become invalid when the process ends,
    ///   but clients can still log in without them.
    static func inDirectory(_ directory: String) -> [UInt8]? {
        let file = URL(filePath: directory).appending(path: fileName)
        let data = try? BoundedFile.read(file.path, maxBytes: ReconnectTickets.keyBytes)
        if let data, data.count == ReconnectTickets.keyBytes { return Array(data) }
        let key = ReconnectTickets.randomKey()
        // A file of another length is damaged.
        try? FileManager.default.removeItem(at: file)
        return PrivateFile.create(file.path, contents: key, for: directory) ? key : nil
    }
}
