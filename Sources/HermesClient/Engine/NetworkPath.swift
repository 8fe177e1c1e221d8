// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Network)
import Dispatch
import Network
#endif

/// The way from the device to the internet.
public struct NetworkPath: Hashable, Sendable {
    /// Names the network, for example "wifi 192.168.1.1" or "cellular": what is learned of a network is remembered
    /// under this name. It stays on the device.
    public var label: String
    /// The kind of network, for example "wifi", "cellular" or "cellular:26201": statistics go to the server under this
    /// name, and it may tell a first guess for the heartbeat. Nothing that names a person or a place.
    public var kind: String
    /// Whether connections can be opened at all.
    public var isUsable: Bool

    /// Creates a path.
    ///
    /// - Parameters:
    ///   - label: names the network; cut at 64 characters.
    ///   - kind: the kind of network, of which only printable ASCII is kept and at most 64 characters; nil: the label up
    ///     to its first space.
    ///   - isUsable: whether connections can be opened at all.
    public init(label: String, kind: String? = nil, isUsable: Bool = true) {
        self.label = String(label.prefix(64))
        let printable = (kind ?? String(label.prefix { $0 != " " })).utf8.filter { $0 > 0x20 && $0 < 0x7F }
        self.kind = String(decoding: printable.prefix(64), as: UTF8.self)
        self.isUsable = isUsable
    }

    /// Nothing is known of the network, but that it is worth a try.
    public static let unknown = NetworkPath(label: "unknown")
}

#if canImport(Network)
extension NetworkPath {
    /// The system's path: the kind of interface, and the gateway, which tells one Wi-Fi from another.
    init(_ path: NWPath) {
        let kinds: [(NWInterface.InterfaceType, String)] = [
            (.wifi, "wifi"), (.cellular, "cellular"), (.wiredEthernet, "wired"), (.loopback, "loopback"),
        ]
        let kind = kinds.first { path.usesInterfaceType($0.0) }?.1 ?? "other"
        let gateway = path.gateways.first.map { " \($0)" } ?? ""
        // `.requiresConnection`: the path comes up when a connection is asked for.
        self.init(label: kind + gateway, isUsable: path.status != .unsatisfied)
    }
}

extension DeviceConditions {
    /// Follows the system's paths from now on, for good.
    func followNetwork() {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { [weak self] path in self?.networkPath = NetworkPath(path) }
        // The monitor lives until it is cancelled; the shared conditions live as long as the process.
        monitor.start(queue: DispatchQueue(label: "hermes.network-path"))
    }
}
#endif
