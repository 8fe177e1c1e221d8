// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import Testing

@testable import HermesServer

/// Devices with application-defined operations. MQTT clients and the HTTP API handle these operations.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct QSIOPOperationTests {
    private struct Closed: Error {}

    /// A device's connection. Only one task at a time may use it.
    private final class Device {
        private let channel: any Channel
        private var arrivals: AsyncStream<ByteBuffer>.AsyncIterator
        private var bytes = ByteBuffer()

        init(_ server: TestServer) async throws {
            let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
            channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Arrivals(continuation))
                    }
                }
                .connect(host: "127.0.0.1", port: server.port("qsiop"))
                .get()
            arrivals = stream.makeAsyncIterator()
        }

        func send(_ operation: UInt16, _ text: String) async throws {
            var bytes = ByteBuffer()
            try QSIOPFrame(QSIOPOperation(rawValue: operation), body: ByteBuffer(string: text)).write(into: &bytes)
            try await channel.writeAndFlush(bytes)
        }

        func next() async throws -> QSIOPFrame {
            var decoder = QSIOPFrameDecoder()
            while true {
                if let frame = try decoder.next(from: &bytes) { return frame }
                guard var more = await arrivals.next(isolation: #isolation) else { throw Closed() }
                bytes.writeBuffer(&more)
            }
        }

        /// Returns the code of the next answer.
        func answer() async throws -> String? {
            let frame = try await next()
            #expect(frame.operation == .response)
            return try frame.properties()["code"]
        }

        func close() async throws { try await channel.close() }

        private final class Arrivals: ChannelInboundHandler {
            typealias InboundIn = ByteBuffer

            private let continuation: AsyncStream<ByteBuffer>.Continuation

            init(_ continuation: AsyncStream<ByteBuffer>.Continuation) { self.continuation = continuation }

            func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(unwrapInboundIn(data)) }
            func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
        }
    }

    /// Creates an account and a connection of its device, which has sent its report.
    private static func device(
        _ server: TestServer,
        _ name: String,
        id: String = "pager"
    ) async throws -> (HermesCore.UserID, Device) {
        let account = try await server.messenger().accounts.createAccount(nickName: name, password: "secret1")
        let device = try await Device(server)
        try await device.send(2, "userid:\(account.id.rawValue)\ndevice:\(id)")
        #expect(try await device.answer() == "0")
        return (account.id, device)
    }

    @Test(arguments: TestStore.allCases)
    func `a device's operation reaches subscribers as JSON; theirs and the back end's reach it as operations`(
        store: TestStore
    ) async throws {
        try await withServer(store: store) { server in
            let (user, device) = try await Self.device(server, "ann")
            let topics = "qsiop/\(user.rawValue)/pager"
            // The topic has no subscribers.
            try await device.send(16, "t:21")
            #expect(try await device.answer() == "404")

            let client = try server.mqtt(as: "ann", id: "ann's own")
            try await client.connect()
            try await client.subscribe(to: "\(topics)/+", qos: .atLeastOnce)
            try await device.send(16, "t:21\nunit:C")
            #expect(try await device.answer() == "0")
            for await message in client.messages {
                #expect(message.topic == "\(topics)/16")
                #expect(message.text == #"{"t":"21","unit":"C"}"#)
                #expect(message.properties.contentType == "application/json")
                break
            }

            try await client.publish(#"{"light":true,"level":3}"#, to: "\(topics)/down/17", qos: .atLeastOnce)
            var frame = try await device.next()
            #expect(frame.operation.rawValue == 17)
            #expect(String(buffer: frame.body) == "light:true\nlevel:3\n")

            let api = try await APIClient(server)
            let body = #"{"topic":"\#(topics)/down/65535","payload":{"json":{"go":"on"}}}"#
            #expect(try await api.send("POST", "/v1/topics/publish", body).status == 202)
            frame = try await device.next()
            #expect(frame.operation.rawValue == 65_535)
            #expect(String(buffer: frame.body) == "go:on\n")

            // A payload that is not an operation is refused with an error.
            let refused = #"{"topic":"\#(topics)/down/17","payload":{"text":"hello"}}"#
            #expect(try await api.send("POST", "/v1/topics/publish", refused).status == 422)
            await #expect(throws: HermesClientError.self) {
                try await client.publish("hello", to: "\(topics)/down/17", qos: .atLeastOnce)
            }
            try await device.send(0, "")
            #expect(try await device.next().operation == .pong)
            await client.close()
        }
    }

    /// The number of refused payloads. Other tests in this process count in the same metric.
    private static func refusedPayloads() -> Double {
        let series = MetricsRegistry.shared.snapshot()["hermes_mqtt_refused_total"]
        return series?[#"packet="publish",reason="payload""#] ?? 0
    }

    @Test func `a name or a text that would change on the way is refused, and the device gets no part of it`()
        async throws
    {
        _ = MetricsRegistry.installed
        try await withServer { server in
            let (user, device) = try await Self.device(server, "ann")
            let topic = "qsiop/\(user.rawValue)/pager/down/21"
            let client = try server.mqtt(as: "ann", id: "ann's own")
            try await client.connect()
            let api = try await APIClient(server)
            for payload in [#"{"a:b":"1","a_b":"2"}"#, #"{"a\nb":"1"}"#, #"{"text":"two\nlines"}"#] {
                let error = await #expect(throws: HermesClientError.self) {
                    try await client.publish(payload, to: topic, qos: .atLeastOnce)
                }
                #expect(error?.mqttReason?.rawValue == 0x99)
                let body = #"{"topic":"\#(topic)","payload":{"json":\#(payload)}}"#
                #expect(try await api.send("POST", "/v1/topics/publish", body).status == 422)
            }
            // A publication with QoS 0 has no answer, so it is counted.
            let before = Self.refusedPayloads()
            try await client.publish(#"{"a:b":"1"}"#, to: topic)
            try await client.publish(#"{"a_b":"2","text":["two\nlines"]}"#, to: topic, qos: .atLeastOnce)
            #expect(Self.refusedPayloads() >= before + 1)
            #expect(String(buffer: try await device.next().body) == "a_b:2\ntext:[\"two\\nlines\"]\n")
            await client.close()
        }
    }

    @Test func `what an older version accepted, and a device cannot get, is counted`() async throws {
        _ = MetricsRegistry.installed
        try await withServer { server in
            let (user, device) = try await Self.device(server, "ann")
            let topic = try #require(TopicName("qsiop/\(user.rawValue)/pager/down/21"))
            let before = Self.refusedPayloads()
            // The plane does not check the payload, as an older version did not.
            for payload in [#"{"a:b":"1"}"#, #"{"a":"1"}"#] {
                let publication = Publication(
                    topic: topic,
                    payload: ByteBuffer(string: payload),
                    kind: Publication.plainKind
                )
                #expect(try server.assembly().core.topics.publish(publication))
            }
            #expect(String(buffer: try await device.next().body) == "a:1\n")
            #expect(Self.refusedPayloads() >= before + 1)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a back end that is away gets it later; the device is answered after the commit, in order`(
        store: TestStore
    ) async throws {
        try await withServer(store: store) { server in
            let (user, device) = try await Self.device(server, "ann")
            let first = try server.mqtt(as: "ann", id: "backend", keeps: true)
            try await first.connect()
            try await first.subscribe(to: "qsiop/\(user.rawValue)/#", qos: .atLeastOnce)
            await first.close()
            for number in 1...20 { try await device.send(16, "n:\(number)") }
            try await device.send(9, "")
            for _ in 1...20 { #expect(try await device.answer() == "0") }
            #expect(try await device.answer() == "404")

            let again = try server.mqtt(as: "ann", id: "backend", keeps: true)
            try await again.connect()
            var texts: [String] = []
            for await message in again.messages {
                texts.append(message.text ?? "")
                if texts.count == 20 { break }
            }
            #expect(texts == (1...20).map { #"{"n":"\#($0)"}"# })
            await again.close()
        }
    }

    @Test func `other accounts neither hear a device nor talk to it, unless a rule lets them`() async throws {
        try await withServer { server in
            let (user, device) = try await Self.device(server, "ann")
            _ = try await server.messenger().accounts.createAccount(nickName: "eve", password: "secret1")
            let topics = "qsiop/\(user.rawValue)/pager"
            for name in ["eve", nil] {
                let stranger = try server.mqtt(as: name, id: "stranger")
                try await stranger.connect()
                for topic in ["\(topics)/down/16", "\(topics)/16"] {
                    await #expect(throws: HermesClientError.self) {
                        try await stranger.publish("{}", to: topic, qos: .atLeastOnce)
                    }
                }
                await #expect(throws: HermesClientError.self) {
                    try await stranger.subscribe(to: "\(topics)/+", qos: .atLeastOnce)
                }
                await stranger.close()
            }
            try await device.send(0, "")
            #expect(try await device.next().operation == .pong)
        }
    }

    @Test func `who has not reported has no operations, and a device id that is no level has none`() async throws {
        try await withServer { server in
            let stranger = try await Device(server)
            try await stranger.send(16, "t:1")
            #expect(try await stranger.answer() == "\(HermesError.Code.notAuthenticated.rawValue)")
            for id in ["a/b", "+", "#"] {
                let (_, device) = try await Self.device(server, "ann\(id.utf8.first ?? 0)", id: id)
                try await device.send(16, "t:1")
                #expect(try await device.answer() == "\(HermesError.Code.invalidArgument.rawValue)")
            }
            let (_, device) = try await Self.device(server, "bob")
            try await device.send(6, "")
            #expect(try await device.answer() == "404")
        }
    }

    @Test func `a device that is gone gets nothing, and leaves no subscription behind`() async throws {
        try await withServer { server in
            let (user, device) = try await Self.device(server, "ann")
            let client = try server.mqtt(as: "ann", id: "own")
            try await client.connect()
            #expect(
                try await client.publish("{}", to: "qsiop/\(user.rawValue)/pager/down/16", qos: .atLeastOnce)
                    == .success
            )
            try await device.close()
            while try await client.publish("{}", to: "qsiop/\(user.rawValue)/pager/down/16", qos: .atLeastOnce)
                != .noMatchingSubscribers
            {
                await Task.yield()
            }
            await client.close()
        }
    }
}
