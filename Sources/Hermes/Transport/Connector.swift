// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Network)
import NIOTransportServices
#endif

/// Opens connections to one server, at the first of its endpoints that answers.
package struct Connector: Sendable {
    private let address: ServerAddress
    private let webSocket: WebSocketTarget?
    private let sslContext: NIOSSLContext?
    /// The name that the server's certificate must contain; nil if it is the endpoint's host.
    private let serverName: String?
    private let pinnedKeys: Set<[UInt8]>?

    /// Creates a connector for an address.
    ///
    /// - Parameter subprotocol: the WebSocket subprotocol that the client requests; nil if the client's protocol cannot
    ///   use WebSocket.
    /// - Throws: HermesClientError `.badTLS` if the TLS options are invalid, `.cannotConnect` if the address has a
    ///   WebSocket path and the client's protocol cannot use WebSocket.
    package init(_ address: ServerAddress, subprotocol: String? = nil) throws(HermesClientError) {
        self.address = address
        if let path = address.webSocketPath {
            guard let subprotocol else {
                throw HermesClientError(.cannotConnect, "this protocol has no WebSocket: leave out the path \(path)")
            }
            webSocket = WebSocketTarget(path: path, subprotocol: subprotocol)
        } else {
            webSocket = nil
        }
        let options = address.tlsOptions
        serverName = options?.serverName
        sslContext = try options.map { options throws(HermesClientError) in try Self.context(options) }
        do {
            pinnedKeys = try options?.pinnedCertificates.map { try PinnedKeyHandler.keys(of: $0.certificates()) }
        } catch {
            let source = options?.pinnedCertificates?.name ?? ""
            throw HermesClientError(
                .badTLS,
                "\(source) holds no certificates to pin the server to: \(explain(error))",
                cause: error
            )
        }
    }

    /// Returns an event loop for clients that are not given one.
    package static func defaultEventLoop() -> any EventLoop {
        #if canImport(Network)
        NIOTSEventLoopGroup.singleton.next()
        #else
        MultiThreadedEventLoopGroup.singleton.next()
        #endif
    }

    /// Opens a channel on an event loop. The function `configure` adds the handler that gets the decrypted bytes.
    ///
    /// - Parameter preferred: the endpoint that is tried before the address itself; nil if there is none.
    package func connect(
        on eventLoop: any EventLoop,
        preferring preferred: ServerAddress.Endpoint?,
        configure: @escaping @Sendable (any Channel) throws -> Void
    ) -> EventLoopFuture<any Channel> {
        let preferred = preferred.flatMap { address.mayRedirect(to: $0) ? $0 : nil }
        var endpoints: [ServerAddress.Endpoint] = []
        for endpoint in [preferred, address.endpoint].compactMap({ $0 }) + address.alternatives
        where !endpoints.contains(endpoint) { endpoints.append(endpoint) }
        guard endpoints.count > 1 else { return open(address.endpoint, on: eventLoop, configure: configure) }
        return race(endpoints, on: eventLoop, configure: configure)
    }

    /// Opens a channel to one endpoint.
    func open(
        _ endpoint: ServerAddress.Endpoint,
        on eventLoop: any EventLoop,
        configure: @escaping @Sendable (any Channel) throws -> Void
    ) -> EventLoopFuture<any Channel> {
        guard let webSocket else { return openStream(endpoint, on: eventLoop, configure: configure) }
        let upgrade = WebSocketUpgrade(
            host: endpoint.text,
            target: webSocket,
            timeout: TimeAmount(address.connectTimeout),
            upgraded: eventLoop.makePromise(),
            configure: configure
        )
        let opened = openStream(endpoint, on: eventLoop) { try upgrade.begin($0) }
        opened.whenFailure { upgrade.upgraded.fail($0) }
        return upgrade.upgraded.futureResult
    }

    private func openStream(
        _ endpoint: ServerAddress.Endpoint,
        on eventLoop: any EventLoop,
        configure: @escaping @Sendable (any Channel) throws -> Void
    ) -> EventLoopFuture<any Channel> {
        let serverName = serverName(for: endpoint)
        let initializer: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
            channel.eventLoop.makeCompletedFuture {
                if let sslContext {
                    let handler = try NIOSSLClientHandler(context: sslContext, serverHostname: serverName)
                    try channel.pipeline.syncOperations.addHandler(handler)
                    if let pinnedKeys {
                        try channel.pipeline.syncOperations.addHandler(PinnedKeyHandler(keys: pinnedKeys))
                    }
                }
                try configure(channel)
            }
        }
        let timeout = TimeAmount(address.connectTimeout)
        #if canImport(Network)
        // NIOSSL provides TLS here too, so that behaviour and errors are the same on all platforms.
        if let bootstrap = NIOTSConnectionBootstrap(validatingGroup: eventLoop) {
            return bootstrap.connectTimeout(timeout).channelInitializer(initializer)
                .connect(host: endpoint.host, port: endpoint.port)
        }
        #endif
        return ClientBootstrap(group: eventLoop)
            .connectTimeout(timeout)
            .channelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer(initializer)
            .connect(host: endpoint.host, port: endpoint.port)
    }

    /// Returns the server name for TLS; nil for an IP address, because TLS allows only names.
    private func serverName(for endpoint: ServerAddress.Endpoint) -> String? {
        if let serverName { return serverName }
        return (try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)) == nil ? endpoint.host : nil
    }

    private static func context(_ options: TLSOptions) throws(HermesClientError) -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if !options.verifiesServer { configuration.certificateVerification = .none }
        switch options.trustedCertificates {
        case nil: break
        case .file(let file): configuration.trustRoots = .file(file)
        case .some(let source):
            configuration.trustRoots = .certificates(try using([source]) { try source.certificates() })
        }
        if let certificate = options.certificate {
            let chain = try using([certificate]) { try certificate.certificates() }
            configuration.certificateChain = chain.map { .certificate($0) }
            let key = options.privateKey ?? certificate
            configuration.privateKey = .privateKey(try using([key]) { try key.privateKey() })
        }
        let sources = [options.trustedCertificates, options.certificate, options.privateKey].compactMap { $0 }
        return try using(sources) { try NIOSSLContext(configuration: configuration) }
    }

    /// Runs a step of the setup of TLS.
    ///
    /// - Parameter sources: the certificates and keys that the step uses.
    /// - Throws: HermesClientError `.badTLS`; the message names the sources and the reason.
    private static func using<Value>(
        _ sources: [TLSOptions.Source],
        _ step: () throws -> Value
    ) throws(HermesClientError) -> Value {
        do {
            return try step()
        } catch {
            let problem: String
            if let unreadable = sources.compactMap(\.fileProblem).first {
                problem = ": \(unreadable)"
            } else {
                let names = sources.map(\.name).joined(separator: ", ")
                problem = (names.isEmpty ? "" : " with \(names)") + ": \(explain(error))"
            }
            throw HermesClientError(.badTLS, "TLS cannot be set up\(problem)", cause: error)
        }
    }
}
