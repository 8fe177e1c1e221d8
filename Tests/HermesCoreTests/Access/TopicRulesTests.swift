// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct TopicRulesTests {
    private let anonymous = ClientIdentity(clientID: "c1")
    private let anna = ClientIdentity(userName: "anna", clientID: "phone")

    @Test(arguments: [
        (TopicAction.publish, "a/b", true), (.subscribe, "a/b", true), (.subscribe, "a/+/#", true),
        (.publish, "room/lobby", true), (.subscribe, "room/#", true), (.publish, "/", true),
        (.publish, "hermes/v1/up", true), (.publish, "hermes/v1/up/json", true), (.publish, "hermes/v1/down", false),
        (.subscribe, "hermes/v1/down", true), (.subscribe, "hermes/v1/down/json", true),
        (.subscribe, "hermes/v1/up", false), (.publish, "hermes", false), (.publish, "hermes/x", false),
        (.subscribe, "hermes/#", false), (.publish, "hermesx", true), (.publish, "users/anna", true),
        (.publish, "$SYS/x", false), (.subscribe, "$SYS/x", true), (.subscribe, "$SYS/#", true),
        (.publish, "$other", false), (.subscribe, "$other/#", false),
        (.publish, "user/anna", true), (.publish, "user/anna/x/y", true), (.subscribe, "user/anna/#", true),
        (.subscribe, "$share/g/user/anna/#", true), (.subscribe, "$share/g/user/bob/#", false),
        (.publish, "user/bob/x", false), (.subscribe, "user/bob", false), (.subscribe, "user/+", false),
        (.subscribe, "user/+/x", false), (.subscribe, "user/#", false), (.publish, "user", false),
        (.publish, "user/Anna", false), (.subscribe, "#", false), (.subscribe, "+/anna", false),
        (.subscribe, "+/#", false), (.publish, "a/+", false), (.publish, "#", false), (.subscribe, "a/#/b", false),
        (.subscribe, "", false), (.subscribe, "$share/g", false), (.subscribe, "$share/g/", false),
        (.subscribe, "$share/+/user/bob", false),
    ])
    func `what holds without a file`(action: TopicAction, topic: String, isAllowed: Bool) {
        #expect(TopicRules().allows(action, topic, for: anna) == isAllowed)
    }

    /// The rules of each subscriber of `#` are checked for each publication. So the cost of a check must not depend on
    /// the length of a stranger's topic.
    @Test func `a rule looks at as much of a topic as it has itself`() throws {
        let rules = try TopicRules(parsing: "deny all read secret/+/keys\nallow all read #").bound(to: anonymous)
        func time(_ topic: TopicName) -> Duration {
            ContinuousClock().measure {
                for _ in 0..<2_000 where !rules.allows(.subscribe, topic) { Issue.record("denied") }
            }
        }
        let long = String(repeating: "é/", count: 20_000)
        let pairs = try (0..<5).map { _ in
            (try time(#require(TopicName("é/é"))), try time(#require(TopicName(long))))
        }
        // A check of the whole topic would take several thousand times as long.
        #expect(pairs.contains { $1 < $0 * 20 }, "\(pairs)")
    }

    @Test func `a filter of which only a part may be read is told from one of which nothing may be`() {
        let rules = TopicRules()
        #expect(rules.access(toSubscribe: "#", for: anna) == .some)
        #expect(rules.access(toSubscribe: "+/status", for: anna) == .some)
        #expect(rules.access(toSubscribe: "$share/g/#", for: anna) == .some)
        #expect(rules.access(toSubscribe: "user/+/x", for: anna) == .some)
        #expect(rules.access(toSubscribe: "user/bob/#", for: anna) == .none)
        #expect(rules.access(toSubscribe: "user/#", for: anonymous) == .none)
        #expect(rules.access(toSubscribe: "user/+", for: anonymous) == .none)
        #expect(rules.access(toSubscribe: "a/#", for: anonymous) == .all)
    }

    @Test func `levels are divided by bytes: a combining mark does not hide a slash`() throws {
        let rules = try TopicRules(parsing: "deny all readwrite a/#")
        for filter in ["a/\u{301}b", "a/\u{301}b/#", "$share/g/a/\u{301}b/#", "$share/\u{301}g/a/x"] {
            #expect(rules.access(toSubscribe: filter, for: anonymous) == .none, "\(filter.utf8.count)")
        }
        #expect(rules.access(toSubscribe: "+/\u{301}b", for: anonymous) == .some)
        #expect(!rules.allows(.publish, "a/\u{301}b", for: anonymous))
    }

    @Test func `the first rule that matches decides`() throws {
        let rules = try TopicRules(
            parsing: """
                # home
                deny  user bob readwrite home/secret/#
                allow user Anna write home/%c/set
                deny anonymous write home/#\r
                allow client c1 read "a b/+"

                deny all read locked/#
                """
        )
        let bob = ClientIdentity(userName: "bob", clientID: "b")
        #expect(rules.count == 5)
        #expect(!rules.allows(.publish, "home/secret/x", for: bob))
        #expect(!rules.allows(.subscribe, "home/secret", for: bob))
        #expect(!rules.allows(.subscribe, "home/+", for: bob))
        #expect(rules.allows(.publish, "home/secret/x", for: anna))
        #expect(!rules.allows(.publish, "home/x", for: anonymous))
        #expect(rules.allows(.subscribe, "home/#", for: anonymous))
        #expect(!rules.allows(.subscribe, "locked/x", for: anna))
        #expect(rules.allows(.publish, "locked/x", for: anna))
        #expect(rules.allows(.subscribe, "a b/x", for: anonymous))
    }

    @Test func `a wildcard that allows reaches no reserved space, one that denies reaches all`() throws {
        let open = try TopicRules(parsing: "allow all readwrite #")
        for topic in ["$SYS/a", "hermes/x", "user/bob/x"] { #expect(!open.allows(.publish, topic, for: anna)) }
        let named = try TopicRules(parsing: "allow all readwrite user/#\nallow all write $SYS/#")
        #expect(named.allows(.subscribe, "user/bob/x", for: anna))
        #expect(named.allows(.publish, "$SYS/a", for: anna))
        let closed = try TopicRules(parsing: "allow all read a/#\ndeny all readwrite #")
        for topic in ["$SYS/a", "hermes/v1/up", "user/anna/x", "b"] {
            #expect(!closed.allows(.publish, topic, for: anna))
            #expect(closed.access(toSubscribe: topic, for: anna) == .none)
        }
        #expect(closed.allows(.subscribe, "a/+", for: anna))
        #expect(closed.access(toSubscribe: "#", for: anna) == .some)
    }

    @Test(arguments: ["a/b", "+", "#", "a+", "", "a\0b", "/"])
    func `a name with characters of filters widens no rule`(name: String) throws {
        let rules = try TopicRules(
            parsing: "allow all readwrite own/%c/#\nallow all readwrite own/x-%u-%c\ndeny all readwrite own/#"
        )
        let client = ClientIdentity(userName: "anna", clientID: name)
        for topic in ["own", "own/a", "own/a/b", "own/b/x", "own/x-anna-\(name)", "own//"] {
            #expect(!rules.allows(.publish, topic, for: client), "\(topic)")
            #expect(!rules.allows(.subscribe, topic, for: client), "\(topic)")
        }
        #expect(!rules.allows(.subscribe, "own/\(name)/#", for: client))
        #expect(!rules.allows(.subscribe, "own/+/#", for: client))
        let user = ClientIdentity(userName: name, clientID: "c")
        for topic in ["user/a/b", "user/a", "user//x", "user"] {
            #expect(!TopicRules().allows(.publish, topic, for: user), "\(topic)")
        }
    }

    @Test func `a denial whose name is not usable holds for every name`() throws {
        let rules = try TopicRules(parsing: "deny all write dev/%u/locked\ndeny all write part/a-%c-b")
        #expect(!rules.allows(.publish, "dev/bob/locked", for: anonymous))
        #expect(rules.allows(.publish, "dev/bob/locked", for: anna))
        #expect(!rules.allows(.publish, "dev/anna/locked", for: anna))
        #expect(!rules.allows(.publish, "part/a-phone-b", for: anna))
        #expect(rules.allows(.publish, "part/a-pad-b", for: anna))
        #expect(!rules.allows(.publish, "part/x", for: ClientIdentity(clientID: "a/b")))
    }

    @Test func `a denial also meets what looks the same in Unicode, a permission does not`() throws {
        let rules = try TopicRules(
            parsing: "deny all read K/x\ndeny all read caf\u{E9}\nallow all read caf\u{E9}2\ndeny all read +"
        )
        #expect(!rules.allows(.subscribe, "\u{212A}/x", for: anna))
        #expect(!rules.allows(.subscribe, "cafe\u{301}", for: anna))
        #expect(rules.allows(.subscribe, "caf\u{E9}2", for: anna))
        #expect(!rules.allows(.subscribe, "cafe\u{301}2", for: anna))
    }

    @Test func `claims of a token narrow what the rules allow`() throws {
        var identity = anna
        identity.claims = TopicClaims(
            publish: [try #require(TopicFilter("a/+")), try #require(TopicFilter("user/#"))],
            subscribe: []
        )
        let rules = TopicRules()
        #expect(rules.allows(.publish, "a/b", for: identity))
        #expect(!rules.allows(.publish, "a/b/c", for: identity))
        #expect(!rules.allows(.publish, "user/bob", for: identity))
        #expect(rules.allows(.publish, "user/anna", for: identity))
        #expect(rules.access(toSubscribe: "a/b", for: identity) == .none)
        identity.claims?.subscribe = [try #require(TopicFilter("a/#"))]
        #expect(rules.access(toSubscribe: "a/b/+", for: identity) == .all)
        #expect(rules.access(toSubscribe: "+/b", for: identity) == .some)
        #expect(rules.access(toSubscribe: "b/#", for: identity) == .none)
        identity.claims = TopicClaims(publish: [try #require(TopicFilter("#"))], subscribe: nil)
        #expect(!rules.allows(.publish, "$SYS/x", for: identity))
        #expect(rules.allows(.publish, "b", for: identity))
        #expect(rules.allows(.subscribe, "b", for: identity))
    }

    @Test(arguments: [
        ("allow", 1, "read, write or readwrite"), ("\n\nforbid all read a", 3, "allow or deny"),
        ("allow all read", 1, "filter is missing"), ("allow read a b", 1, "double quotes"),
        ("allow read a/#/b", 1, "not a topic filter"), ("allow read a+", 1, "not a topic filter"),
        ("allow read %x", 1, "after %"), ("# ok\nallow read 50%", 2, "after %"), ("allow user", 1, "user needs a name"),
        ("allow user \"\" read a", 1, "empty"), ("allow client read a", 1, "read, write or readwrite"),
        ("allow user \"anna read a", 1, "closing"), ("allow user \"anna\"x read a", 1, "must follow"),
        ("allow user anna change a", 1, "\"change\""), ("allow everybody read a", 1, "\"everybody\""),
    ])
    func `an error names its line`(text: String, line: Int, part: String) {
        let error = #expect(throws: TopicRules.SyntaxError.self) { try TopicRules(parsing: text) }
        #expect(error?.line == line)
        #expect(error?.description.contains(part) == true, "\(String(describing: error))")
    }

    @Test func `too large a file is refused`() {
        let line = "allow all read a\n"
        #expect(throws: TopicRules.SyntaxError.self) {
            try TopicRules(parsing: String(repeating: line, count: TopicRules.maxRules + 1))
        }
        #expect(throws: TopicRules.SyntaxError.self) {
            try TopicRules(parsing: String(repeating: "#", count: TopicRules.maxBytes + 1))
        }
    }

    @Test func `rules are replaced as a whole and say that they were`() throws {
        let access = TopicAccess()
        let before = access.generation
        #expect(access.current.allows(.publish, "a", for: anonymous))
        access.replace(with: try TopicRules(parsing: "deny all readwrite #"))
        #expect(access.generation != before)
        #expect(!access.current.allows(.publish, "a", for: anonymous))
    }

    @Test func `a topic of 32,000 levels is looked at level by level`() throws {
        let rules = try TopicRules(parsing: "deny all write +/+/+/b/#\ndeny all write c/#")
        let topic = String(repeating: "a/", count: 32_000)
        #expect(rules.allows(.publish, topic, for: anna))
        #expect(!rules.allows(.publish, "x/y/z/b" + topic, for: anna) == false)
        #expect(!rules.allows(.publish, "x/y/z/b/" + topic, for: anna))
    }
}

extension TopicRules {
    /// Returns the part of a filter's topics that a client may read.
    fileprivate func access(toSubscribe filter: String, for identity: ClientIdentity) -> SubscriptionAccess {
        bound(to: identity).access(toSubscribe: filter)
    }
}
