// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The token under which a push service reaches this device while the app is not connected.
public struct PushToken: Hashable, Sendable {
    /// The push service.
    public enum Service: Hashable, Sendable {
        /// Apple Push Notification service, for an app from the App Store or TestFlight.
        case apns
        /// The sandbox of Apple Push Notification service, for an app that Xcode installed.
        case apnsSandbox
        /// Firebase Cloud Messaging of Google.
        case fcm
        /// Web Push (RFC 8030).
        case webPush
    }

    /// The push service.
    package var service: Service
    /// The token.
    package var token: String
    /// The app's bundle or package identifier; may be empty.
    package var appID: String

    /// Creates a token of any service.
    ///
    /// - Parameters:
    ///   - service: the push service.
    ///   - token: the service's token. For Apple it is in hexadecimal; for Web Push it is the subscription as JSON.
    ///   - appID: the app's bundle or package identifier. If it is empty, the server uses the identifier in its
    ///     configuration.
    public init(_ service: Service, _ token: String, appID: String = "") {
        self.service = service
        self.token = token
        self.appID = appID
    }

    /// Creates a token from the device token that `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`
    /// passes.
    public static func apple(_ deviceToken: some Sequence<UInt8>, isSandbox: Bool = false, appID: String = "") -> Self {
        let digits = deviceToken.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }
        return PushToken(isSandbox ? .apnsSandbox : .apns, digits.joined(), appID: appID)
    }

    fileprivate var wire: Hermes_V1_PushToken {
        var token = Hermes_V1_PushToken()
        token.service =
            switch service {
            case .apns: .apns
            case .apnsSandbox: .apnsSandbox
            case .fcm: .fcm
            case .webPush: .webPush
            }
        token.token = self.token
        token.appID = appID
        return token
    }
}

extension HermesClient {
    /// Registers the token of this device, so that the device gets pushes while it is not connected. Call this method
    /// at each start of the app, because services change their tokens, and because the server forgets tokens that stop
    /// working.
    ///
    /// - Throws: HermesClientError if the token does not fit its service; CancellationError.
    public func registerPushToken(_ token: PushToken) async throws {
        var request = Hermes_V1_DeviceRequest()
        request.setPushToken = token.wire
        _ = try await result(of: .device(request), replay: .always)
    }

    /// Removes the push token of this device. The device then gets no pushes while it is not connected.
    ///
    /// - Throws: HermesClientError `.timedOut`; CancellationError.
    public func clearPushToken() async throws {
        var request = Hermes_V1_DeviceRequest()
        request.clearPushToken_p = Hermes_V1_ClearPushToken()
        _ = try await result(of: .device(request), replay: .always)
    }
}

extension DeviceConditions.AppState {
    var wire: Hermes_V1_AppState {
        switch self {
        case .foreground: .foreground
        case .background: .background
        case .suspended: .suspended
        }
    }
}
