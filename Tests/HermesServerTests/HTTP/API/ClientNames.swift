// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes

/// The client's type, whose name the core has, too.
typealias ClientPush = Push
/// The client's credential, whose name the core has, too.
typealias ClientCredential = Credential
/// The client's device, whose name the core has, too.
typealias ClientDevice = DeviceDescription
