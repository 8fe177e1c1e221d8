// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes

/// The client's type. The core has a type with the same name.
typealias ClientPush = Push
/// The client's credential. The core has a type with the same name.
typealias ClientCredential = Credential
/// The client's device. The core has a type with the same name.
typealias ClientDevice = DeviceDescription
