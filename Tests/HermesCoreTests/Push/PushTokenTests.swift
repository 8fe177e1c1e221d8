// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite("Push tokens")
struct PushTokenTests {
    // The key has 65 bytes, of which the first is 4. The secret has 16 bytes.
    private static let key = "B" + String(repeating: "A", count: 86)
    private static let secret = String(repeating: "A", count: 22)

    /// A subscription in the form in which it is stored.
    private static func subscription(_ endpoint: String) -> String {
        #"{"endpoint":"\#(endpoint)","keys":{"p256dh":"\#(key)","auth":"\#(secret)"}}"#
    }

    @Test(arguments: [PushToken.Service.apns, .apnsSandbox])
    func `an APNs token is stored in lower case`(service: PushToken.Service) throws {
        let digits = String(repeating: "0aB9", count: 16)
        let token = try PushToken(service, text: digits, appID: "org.example")
        #expect(token.text == String(repeating: "0ab9", count: 16) && token.appID == "org.example")
        #expect(token.identity == token.text)
        #expect(PushToken(stored: service, text: digits, appID: "").identity == token.text)
    }

    @Test
    func `an FCM token is stored as it is`() throws {
        let token = try PushToken(.fcm, text: "d-VwX:APA91b", appID: "")
        #expect(token.text == "d-VwX:APA91b" && token.identity == token.text)
    }

    @Test(arguments: [
        #"{"endpoint":"https://push.example.org/a?b=C","keys":{"p256dh":"KEY","auth":"SECRET"}}"#,
        #"{"endpoint":"https://push.example.org/a?b=C","expirationTime":null,"keys":{"p256dh":"KEY","auth":"SECRET"}}"#,
        #"{"keys":{"auth":"SECRET==","p256dh":"KEY=","x":1},"y":[],"endpoint":"https://push.example.org/a?b=C"}"#,
        #" { "endpoint" : "https:\/\/push.example.org\/a?b=\u0043", "keys" : {"p256dh":"KEY" , "auth":"SECRET"} } "#,
        #"{"endpoint":"https://PUSH.Example.org:443/a?b=C","keys":{"p256dh":"KEY","auth":"SECRET"}}"#,
    ])
    func `a subscription is stored in one form, however the client writes it`(text: String) throws {
        let written = text.replacing("KEY", with: Self.key).replacing("SECRET", with: Self.secret)
        let token = try PushToken(.webPush, text: written, appID: "")
        #expect(token.text == Self.subscription("https://push.example.org/a?b=C"))
        #expect(token.identity == "https://push.example.org/a?b=C")
        #expect(PushToken(stored: .webPush, text: written, appID: "x").identity == token.identity)
    }

    @Test(arguments: [
        ("https://push.example.org", "https://push.example.org/"),
        ("https://push.example.org?", "https://push.example.org/"),
        ("https://push.example.org/%61b%2fc?", "https://push.example.org/ab%2Fc"),
        ("https://push.example.org/a%", "https://push.example.org/a%25"),
        ("https://push.example.org:8443/A/b%2Fc;d=1?E=%7e&f", "https://push.example.org:8443/A/b%2Fc;d=1?E=~&f"),
        (#"https://push.example.org/a\"b\\c?d|e"#, "https://push.example.org/a%22b%5Cc?d%7Ce"),
    ])
    func `the endpoint has one spelling, and its path and query stay`(written: String, stored: String) throws {
        let token = try PushToken(.webPush, text: Self.subscription(written), appID: "")
        #expect(token.text == Self.subscription(stored) && token.identity == stored)
        #expect(try PushToken(.webPush, text: token.text, appID: "") == token)
        #expect(try WebPushSubscription(parsing: token.text).endpoint == stored)
    }

    @Test
    func `what a client may set, a sender can read`() throws {
        let start = "https://push.example.org/"
        let longest = start + String(repeating: "x", count: 2_048 - start.utf8.count)
        #expect(try PushToken(.webPush, text: Self.subscription(longest), appID: "").identity == longest)
        // Each character needs three bytes when it is percent-encoded.
        let long = Self.subscription(start + String(repeating: "|", count: 700))
        for text in [long, Self.subscription(longest + "x")] {
            let error = #expect(throws: HermesError.self) { try PushToken(.webPush, text: text, appID: "") }
            #expect(error?.code == .tooLarge)
        }
        for (appID, code) in [
            (String(repeating: "a", count: 129), HermesError.Code.tooLarge), ("a b", .invalidArgument),
        ] {
            let error = #expect(throws: HermesError.self) { try PushToken(.fcm, text: "t", appID: appID) }
            #expect(error?.code == code)
        }
        #expect(PushToken(stored: .webPush, text: "{}", appID: "").identity == "{}")
    }

    @Test
    func `a service's text is cut, whatever its characters`() {
        let long = String(repeating: "é", count: 125_000)
        for outcome in [
            PushSendOutcome.delivered(id: long), .refused(reason: long),
            .retry(after: .seconds(1), isService: true, reason: long),
        ] {
            #expect("\(outcome.cut)".utf8.count < 1_000)
        }
        #expect(PushSendOutcome.refused(reason: "BadTopic").cut == .refused(reason: "BadTopic"))
        #expect(PushSendOutcome.tokenGone(since: nil).cut == .tokenGone(since: nil))
    }
}
