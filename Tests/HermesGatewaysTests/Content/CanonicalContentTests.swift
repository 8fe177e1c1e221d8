// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// The rules for a content, in every form in which it can arrive.
@Suite struct CanonicalContentTests {
    @Test(arguments: [(StreamSafeText.maxRun, true), (StreamSafeText.maxRun + 1, false)])
    func `bytes that hold too many combining marks in a row are refused in JSON, as they are in a binary packet`(
        count: Int,
        isSafe: Bool
    ) throws {
        let data = Data(String(repeating: "\u{301}", count: count).utf8).base64EncodedString()
        let json = #"{"send":{"to":{"uid":7},"content":{"custom":{"type":"x","data":"\#(data)"}}}}"#
        let packet = try Hermes_V1_Packet(wireJSON: ByteBuffer(string: json))
        #expect(packet.send.content.custom.data.count == 2 * count)
        switch CanonicalContent.validated(packet.send.content) {
        case .success: #expect(isSafe)
        case .failure(let error):
            #expect(!isSafe)
            #expect(error.code == .invalidArgument)
        }
        let binary = try packet.wireBuffer()
        #expect(((try? Hermes_V1_Packet(wire: binary)) != nil) == isSafe)
    }
}
