// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HermesGateways

/// The gateway over real sockets.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct QSIOPGatewayTests {
    typealias Device = WireClient<QSIOPFrameDecoder>

    func withGateway(
        requiresToken: Bool = true,
        limits: ConnectionLimits = ConnectionLimits(),
        _ body: (GatewayHarness) async throws -> Void
    ) async throws {
        var settings = GatewaySettings()
        settings.device = QSIOPSettings(isTokenRequired: requiresToken)
        settings.limits = limits
        try await GatewayHarness.with(QSIOPGateway.self, settings: settings, body)
    }

    func report(_ login: Login, device: String? = nil) -> QSIOPFrame {
        var properties: QSIOPProperties = ["userid": "\(login.principal.user)", "token": login.token ?? ""]
        if let device { properties.append("device", device) }
        return QSIOPFrame(.report, properties)
    }

    func code(_ frame: QSIOPFrame?) throws -> UInt32? {
        guard let frame, frame.operation == .response else { return nil }
        return try frame.properties()["code"].flatMap { UInt32($0) }
    }

    func send(_ text: String, from sender: Principal, to user: UserID, in harness: GatewayHarness) async throws {
        var content = Hermes_V1_Content()
        content.text = text
        let draft = MessageDraft(
            conversation: .direct(between: sender.user, and: user),
            clientID: nil,
            content: MessageContent(bytes: try content.wireBytes())
        )
        _ = try await withCheckedThrowingContinuation { continuation in
            harness.messenger.messages.send(draft, from: sender) { continuation.resume(with: $0) }
        }
    }

    @Test(arguments: [false, true])
    func `an account pays for its devices, and not for who only claims to be one`(_ isProven: Bool) async throws {
        try await withGateway(requiresToken: false) { harness in
            let login = try await harness.register("ann")
            let rates = harness.environment.rates
            let before = rates.count
            for number in 0..<5 {
                let device = try await harness.connect(QSIOPFrameDecoder.self)
                let claim: QSIOPProperties = ["userid": "\(login.principal.user)", "device": "watch-\(number)"]
                try await device.send(isProven ? report(login) : QSIOPFrame(.report, claim))
                #expect(try code(await device.next()) == 0)
                try await device.close()
            }
            // The address always pays.
            let end = ContinuousClock.now + .seconds(isProven ? 10 : 1)
            while rates.count < before + 2, ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(5)) }
            #expect(rates.count - before == (isProven ? 2 : 1))
        }
    }

    @Test func `a device that the server ends is gone at once, although its peer does not close`() async throws {
        try await withGateway { harness in
            let login = try await harness.register("ann")
            let peer = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .channelOption(.allowRemoteHalfClosure, value: true)
                .connect(host: "127.0.0.1", port: harness.listener.port)
                .get()
            var bytes = ByteBuffer()
            try report(login).write(into: &bytes)
            try await peer.writeAndFlush(bytes)
            let (devices, user) = (harness.messenger.devices, login.principal.user)
            while !devices.isOnline(user) { await Task.yield() }
            // This is called on the connection's event loop.
            let loop = try #require(harness.environment.loops.all.first)
            let left = Mutex<Int?>(nil)
            devices.presenceChanged.observe { _, isOnline in
                if !isOnline { left.withLock { $0 = loop.connections.count } }
            }
            // These bytes are not a frame.
            try await peer.writeAndFlush(ByteBuffer(repeating: 0xFF, count: 64))
            while devices.isOnline(user) { await Task.yield() }
            while left.withLock({ $0 }) == nil { await Task.yield() }
            #expect(left.withLock { $0 } == 1, "the server has not given up the connection yet")
            try await peer.close()
        }
    }

    @Test func `many lines wait until they are paid for and too many are refused`() async throws {
        try await withGateway(limits: ConnectionLimits({ $0.requestsPerSecond = 1_000 })) { harness in
            let login = try await harness.register("ann")
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            try await device.send(report(login))
            #expect(try code(await device.next()) == 0)
            let lines = String(repeating: "x:\n", count: QSIOPFrame.maxLines)
            let start = ContinuousClock.now
            for _ in 0..<30 {
                try await device.send(QSIOPFrame(QSIOPOperation(rawValue: 16), body: ByteBuffer(string: lines)))
            }
            for _ in 0..<30 {
                // The topic has no subscribers.
                #expect(try code(await device.next()) == QSIOPAnswer.nobody.code)
            }
            #expect(ContinuousClock.now - start > .milliseconds(900))
            try await device.send(QSIOPFrame(QSIOPOperation(rawValue: 16), body: ByteBuffer(string: lines + "x:\n")))
            #expect(try code(await device.next()) == HermesError.Code.invalidArgument.rawValue)
        }
    }

    @Test func `a device whose account is renamed may do what the rules allow the new name`() async throws {
        let access = TopicAccess(try TopicRules(parsing: "deny user eve write qsiop/#"))
        var settings = GatewaySettings()
        settings.device = QSIOPSettings(isTokenRequired: true)
        try await GatewayHarness.with(settings: settings, access: access, loops: 1) { harness in
            let login = try await harness.register("ann")
            let device = try await WireClient<QSIOPFrameDecoder>.connect(port: harness.port("qsiop"))
            let operation = QSIOPFrame(QSIOPOperation(rawValue: 16), body: ByteBuffer(string: "x:1\n"))
            try await device.send(report(login), operation)
            #expect(try code(await device.next()) == 0)
            #expect(try code(await device.next()) == QSIOPAnswer.nobody.code)
            try await harness.rename(UInt32(login.principal.user.rawValue), to: "eve")
            try await device.send(operation)
            #expect(try code(await device.next()) == HermesError.Code.forbidden.rawValue)
        }
    }

    @Test func `a ping is answered byte for byte`() async throws {
        try await withGateway { harness in
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            try await device.send(bytes: [0, 1, 0, 0, 0, 0])
            let pong = try await device.next()
            #expect(pong == QSIOPFrame(.pong))
        }
    }

    @Test func `every request has its answer in order`() async throws {
        try await withGateway { harness in
            let login = try await harness.register("ann")
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            let unknown = QSIOPFrame(QSIOPOperation(rawValue: 9))
            let badText = QSIOPFrame(.report, body: ByteBuffer(bytes: [0xFF, 0xFE, 0x3A, 0xC0]))
            let acknowledgement = QSIOPFrame(.pushAcknowledge, ["id": "none"])
            try await device.send(unknown, badText, acknowledgement, report(login), acknowledgement, unknown)
            #expect(try code(await device.next()) == 404)
            #expect(try code(await device.next()) == HermesError.Code.invalidArgument.rawValue)
            #expect(try code(await device.next()) == HermesError.Code.notAuthenticated.rawValue)
            #expect(try code(await device.next()) == 0)
            #expect(try code(await device.next()) == HermesError.Code.notFound.rawValue)
            #expect(try code(await device.next()) == 404)
        }
    }

    @Test func `wrong reports are refused and may be repeated`() async throws {
        try await withGateway { harness in
            let ann = try await harness.register("ann")
            let bob = try await harness.register("bob")
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            try await device.send(QSIOPFrame(.report, ["userid": "\(ann.principal.user)", "token": "wrong"]))
            #expect(try code(await device.next()) == HermesError.Code.invalidToken.rawValue)
            try await device.send(QSIOPFrame(.report, ["userid": "\(ann.principal.user)", "token": bob.token ?? ""]))
            #expect(try code(await device.next()) == HermesError.Code.wrongCredentials.rawValue)
            #expect(harness.messenger.devices.attachedDevices(of: bob.principal.user).isEmpty)
            let bobs = try await harness.messenger.accounts.devices(of: bob.principal.user)
            #expect(bobs.map(\.description.id.rawValue) == ["phone"], "no device of somebody else is made")
            try await device.send(report(ann))
            #expect(try code(await device.next()) == 0)
            #expect(harness.messenger.devices.attachedDevices(of: ann.principal.user).map(\.rawValue) == ["qsiop"])
        }
    }

    /// Otherwise a claim without a token could take over a device that has shown a token.
    @Test func `a claim takes over no device that showed a token`() async throws {
        try await withGateway(requiresToken: false) { harness in
            let ann = try await harness.register("ann")
            let pager = try await harness.connect(QSIOPFrameDecoder.self)
            try await pager.send(report(ann, device: "pager"))
            #expect(try code(await pager.next()) == 0)
            let thief = try await harness.connect(QSIOPFrameDecoder.self)
            try await thief.send(QSIOPFrame(.report, ["userid": "\(ann.principal.user)", "device": "pager"]))
            #expect(try code(await thief.next()) == HermesError.Code.forbidden.rawValue)
            #expect(harness.messenger.devices.attachedDevices(of: ann.principal.user).map(\.rawValue) == ["pager"])
            try await thief.send(QSIOPFrame(.report, ["userid": "\(ann.principal.user)", "device": "other"]))
            #expect(try code(await thief.next()) == 0)
        }
    }

    @Test func `the userid alone where that is configured`() async throws {
        try await withGateway(requiresToken: false) { harness in
            let ann = try await harness.register("ann")
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            try await device.send(QSIOPFrame(.report, ["userid": "4711"]))
            #expect(try code(await device.next()) == HermesError.Code.wrongCredentials.rawValue)
            try await device.send(QSIOPFrame(.report, ["userid": "\(ann.principal.user)"]))
            #expect(try code(await device.next()) == 0)
        }
    }

    @Test func `messages are pushed until they are acknowledged`() async throws {
        try await withGateway { harness in
            let ann = try await harness.register("ann")
            let bob = try await harness.register("bob")
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            try await device.send(report(bob, device: "pager"))
            #expect(try code(await device.next()) == 0)
            for number in 1...3 {
                try await send("text \(number)", from: ann.principal, to: bob.principal.user, in: harness)
            }
            var ids: [String] = []
            for number in 1...3 {
                let push = try #require(try await device.next())
                #expect(push.operation == .push)
                let properties = try push.properties()
                #expect(properties["body"] == "text \(number)")
                #expect(properties["title"] == "ann")
                #expect(properties["seq"] == "\(number)")
                ids.append(try #require(properties["id"]))
            }
            // The second and the first push are acknowledged. The third stays.
            for id in [ids[1], ids[0]] {
                try await device.send(QSIOPFrame(.pushAcknowledge, ["id": id]))
                #expect(try code(await device.next()) == 0)
            }
            try await device.close()

            let again = try await harness.connect(QSIOPFrameDecoder.self)
            var seen: [String] = []
            // The cursor is stored later. Until then, only repeated pushes may arrive.
            try await again.send(report(bob, device: "pager"))
            #expect(try code(await again.next()) == 0)
            while let push = try await again.next() {
                let id = try #require(try push.properties()["id"])
                seen.append(id)
                if id == ids[2] { break }
            }
            #expect(Set(seen).isSubset(of: Set(ids)))
            #expect(seen.last == ids[2])
        }
    }

    @Test func `what one says on another device is marked as one's own`() async throws {
        try await withGateway { harness in
            let ann = try await harness.register("ann")
            let bob = try await harness.register("bob")
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            try await device.send(report(ann))
            #expect(try code(await device.next()) == 0)
            try await send("hi", from: ann.principal, to: bob.principal.user, in: harness)
            let properties = try #require(try await device.next()).properties()
            #expect(properties["own"] == "1")
            #expect(properties["conversation"] == "direct/\(bob.principal.user)")
        }
    }

    @Test func `a device that acknowledges nothing gets a window and stays alive`() async throws {
        try await withGateway { harness in
            let ann = try await harness.register("ann")
            let bob = try await harness.register("bob")
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            try await device.send(report(bob))
            #expect(try code(await device.next()) == 0)
            let count = QSIOPDevice.window + 5
            for number in 1...count {
                try await send("\(number)", from: ann.principal, to: bob.principal.user, in: harness)
            }
            var ids: [String] = []
            for _ in 0..<QSIOPDevice.window {
                let push = try #require(try await device.next())
                ids.append(try #require(try push.properties()["id"]))
            }
            try await device.send(QSIOPFrame(.ping))
            #expect(try await device.next()?.operation == .pong)
            // Each acknowledgement makes room for one more push.
            try await device.send(QSIOPFrame(.pushAcknowledge, ["id": ids[0]]))
            #expect(try code(await device.next()) == 0)
            let next = try #require(try await device.next())
            #expect(try next.properties()["body"] == "\(QSIOPDevice.window + 1)")
        }
    }

    @Test func `another version is answered and closed`() async throws {
        try await withGateway { harness in
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            try await device.send(bytes: [0, 0, 0, 0, 0, 0])
            #expect(try code(await device.next()) == HermesError.Code.unsupported.rawValue)
            #expect(try await device.next() == nil)
        }
    }

    @Test func `a second connection of the device replaces the first`() async throws {
        try await withGateway { harness in
            let ann = try await harness.register("ann")
            let first = try await harness.connect(QSIOPFrameDecoder.self)
            try await first.send(report(ann))
            #expect(try code(await first.next()) == 0)
            let second = try await harness.connect(QSIOPFrameDecoder.self)
            try await second.send(report(ann))
            #expect(try code(await second.next()) == 0)
            #expect(try code(await first.next()) == HermesError.Code.replaced.rawValue)
            #expect(try await first.next() == nil)
            try await second.send(QSIOPFrame(.ping))
            #expect(try await second.next()?.operation == .pong)
        }
    }

    @Test func `a stranger cannot use up the devices of an account`() async throws {
        try await withGateway(requiresToken: false) { harness in
            let ann = try await harness.register("ann")
            var last: UInt32?
            for number in 0..<60 {
                let stranger = try await harness.connect(QSIOPFrameDecoder.self)
                let claim: QSIOPProperties = ["userid": "\(ann.principal.user)", "device": "d\(number)"]
                try await stranger.send(QSIOPFrame(.report, claim))
                last = try code(await stranger.next())
                if last != 0 { break }
            }
            #expect(last == HermesError.Code.deviceLimitReached.rawValue)
            // The owner still has room for another device.
            let phone = try #require(DeviceID("new-phone"))
            let login = try await harness.messenger.accounts.logIn(
                .password(nickName: "ann", password: "correct horse"),
                device: DeviceDescription(id: phone),
                address: nil
            )
            #expect(login.principal.device == phone)
        }
    }

    @Test(arguments: ["99", "0", "2147483648"])
    func `a userid that no account can have is answered like one that no account has`(userid: String) async throws {
        try await withGateway(requiresToken: false) { harness in
            let token = try #require(try await harness.register("ann").token)
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            func answer(_ token: String) async throws -> UInt32? {
                try await device.send(QSIOPFrame(.report, ["userid": userid, "token": token]))
                return try code(await device.next())
            }
            #expect(try await answer("") == HermesError.Code.wrongCredentials.rawValue)
            #expect(try await answer(token) == HermesError.Code.wrongCredentials.rawValue)
            #expect(try await answer("none") == HermesError.Code.invalidToken.rawValue)
        }
    }

    @Test func `who reports nobody is closed`() async throws {
        var limits = ConnectionLimits()
        limits.timeToAuthenticate = .milliseconds(100)
        try await withGateway(limits: limits) { harness in
            let device = try await harness.connect(QSIOPFrameDecoder.self)
            #expect(try code(await device.next()) == HermesError.Code.notAuthenticated.rawValue)
            #expect(try await device.next() == nil)
        }
    }
}
