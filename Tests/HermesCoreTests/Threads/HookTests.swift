// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import HermesCore

@Suite struct HookTests {
    @Test func `calls all in the order in which they were added`() {
        let hook = Hook<Int>()
        let called = Mutex<[String]>([])
        hook(1)
        hook.observe { event in called.withLock { $0.append("a\(event)") } }
        hook.observe { event in called.withLock { $0.append("b\(event)") } }
        hook(2)
        #expect(called.withLock { $0 } == ["a2", "b2"])
    }

    @Test
    func `a call uses as much of the stack as the one before, however many there were`() {
        let hook = Hook<(number: Int, isLast: Bool)>()
        let depths = Mutex<Set<UInt>>([])
        hook.observe { event in
            var here = event.number
            let address = withUnsafePointer(to: &here) { UInt(bitPattern: $0) }
            depths.withLock { _ = $0.insert(address) }
        }
        for number in 0..<1_000 { hook((number, number == 999)) }
        #expect(depths.withLock { $0.count } == 1)
    }
}
