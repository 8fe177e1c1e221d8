// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// Where a push service reaches this device while the app is not connected.
public struct PushToken: Hashable, Sendable {
    /// Who delivers.
    public enum Service: Hashable, Sendable {
        /// Apple's, for an app from the App Store or TestFlight.
        case apns
        /// Apple's, for an app that Xcode installed.
        case apnsSandbox
        /// Google's Firebase Cloud Messaging.
        case fcm
        /// Web Push (RFC 8030).
        case webPush
    }

    /// Who delivers.
    public var service: Service
    /// As the service gave it: in hexadecimal for Apple's, the subscription as JSON for Web Push.
    public var token: String
    /// The app's bundle or package identifier; empty: the one of the server's configuration.
    public var appID: String

    /// A token of any service.
    public init(_ service: Service, _ token: String, appID: String = "") {
        self.service = service
        self.token = token
        self.appID = appID
    }

    /// The device token that `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)` gives.
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
    /// Tells the server where to push what comes while this device is not connected. To be called at each start of the app:
    /// services change their tokens, and the server forgets those that no longer work.
    ///
    /// - Throws: HermesClientError if the token is none of its service; CancellationError.
    public func registerPushToken(_ token: PushToken) async throws {
        var request = Hermes_V1_DeviceRequest()
        request.setPushToken = token.wire
        _ = try await result(of: .device(request), replay: .always)
    }

    /// Ends pushes to this device.
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
