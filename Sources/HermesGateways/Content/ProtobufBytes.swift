// Hermes
// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf

/// Converts bytes to the type of the generated messages' `bytes` fields. The caller need not import Foundation.
func protobufBytes<Bytes: SwiftProtobufContiguousBytes>(_ bytes: some Sequence<UInt8>) -> Bytes { Bytes(bytes) }
