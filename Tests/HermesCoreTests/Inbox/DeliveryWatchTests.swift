// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import HermesCore

@Suite struct DeliveryWatchTests {
    @Test func `all observers hear of commits and acknowledgements`() throws {
        let watch = DeliveryWatch()
        let heard = Mutex<[String]>([])
        for name in ["first", "second"] {
            watch.entriesCommitted.observe { entries in
                heard.withLock { $0.append("\(name): committed for \(entries.keys.map(\.rawValue))") }
            }
            watch.entriesAcknowledged.observe { acknowledgement in
                let text = "\(name): \(acknowledgement.user.rawValue) has \(acknowledgement.seq)"
                heard.withLock { $0.append(text) }
            }
        }
        watch.committed([:])
        #expect(heard.withLock { $0.isEmpty }, "an empty commit is none")
        watch.committed([try user(1): []])
        watch.acknowledged(try user(2), try device("phone"), upTo: 7, isProven: true)
        #expect(
            heard.withLock { $0 } == [
                "first: committed for [1]", "second: committed for [1]", "first: 2 has 7", "second: 2 has 7",
            ]
        )
    }
}
