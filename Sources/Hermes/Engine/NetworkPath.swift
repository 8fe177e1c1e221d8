// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Network)
import Dispatch
import Network
#endif

/// The device's network.
public struct NetworkPath: Hashable, Sendable {
    /// The network's name, for example "wifi 192.168.1.1" or "cellular". Learned heartbeats are kept under this name.
    /// The name is not sent to the server.
    package var label: String
    /// The kind of network, for example "wifi", "cellular" or "cellular:26201". Statistics are sent to the server
    /// under this name, and the server may suggest a heartbeat interval for it. The name must therefore not identify a
    /// person or a place.
    package var kind: String
    /// Whether connections can be opened at all.
    package var isUsable: Bool

    /// Creates a path.
    ///
    /// - Parameters:
    ///   - label: the network's name. It is cut off after 64 characters.
    ///   - kind: the kind of network. If it is nil, the kind is the label up to its first space. Only printable ASCII
    ///     is kept, at most 64 characters.
    ///   - isUsable: whether connections can be opened at all.
    public init(label: String, kind: String? = nil, isUsable: Bool = true) {
        self.label = String(label.prefix(64))
        let printable = (kind ?? String(label.prefix { $0 != " " })).utf8.filter { $0 > 0x20 && $0 < 0x7F }
        self.kind = String(decoding: printable.prefix(64), as: UTF8.self)
        self.isUsable = isUsable
    }

    /// An unknown network, which counts as usable.
    package static let unknown = NetworkPath(label: "unknown")
}

#if canImport(Network)
extension NetworkPath {
    /// Creates a path from the system's path. The label is the kind of interface and, to distinguish Wi-Fi networks,
    /// the gateway.
    init(_ path: NWPath) {
        let kinds: [(NWInterface.InterfaceType, String)] = [
            (.wifi, "wifi"), (.cellular, "cellular"), (.wiredEthernet, "wired"), (.loopback, "loopback"),
        ]
        let kind = kinds.first { path.usesInterfaceType($0.0) }?.1 ?? "other"
        let gateway = path.gateways.first.map { " \($0)" } ?? ""
        // A path with the status `.requiresConnection` becomes usable when a connection is opened, so it counts as
        // usable.
        self.init(label: kind + gateway, isUsable: path.status != .unsatisfied)
    }
}

extension DeviceConditions {
    /// Follows the system's network from now on.
    func followNetwork() {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { [weak self] path in self?.networkPath = NetworkPath(path) }
        // The monitor lives until it is cancelled; the shared conditions live as long as the process.
        monitor.start(queue: DispatchQueue(label: "hermes.network-path"))
    }
}
#endif
