// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire
import NIOCore

/// Devices of accounts, and their login tokens.
extension APICore {
    private typealias Field = APISchema.Field

    static let deviceID = APISchema.text(
        bytes: 1...DeviceID.maxBytes,
        APISchema.StringForm(pattern: "^[!-~]+$", meaning: "printable ASCII without blanks") { DeviceID($0) != nil }
    )

    var deviceRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/users/{user}/devices",
                id: "listDevices",
                summary: "The devices of an account, oldest first.",
                scope: .usersRead,
                pathParameters: [APIRoute.user],
                success: .ok,
                answer: .object([
                    Field("devices", .array(Self.device, count: 0...Int.max), required: true, "Oldest first.")
                ]),
                failures: [.notFound],
                handler: listDevices
            ),
            APIRoute(
                method: .delete,
                path: "/users/{user}/devices/{device_id}",
                id: "removeDevice",
                summary: "Remove a device: its tokens are revoked, it is disconnected, and nothing waits for it.",
                scope: .usersWrite,
                pathParameters: [
                    APIRoute.user, APIRoute.Parameter("device_id", Self.deviceID, required: true, "Which device."),
                ],
                success: .noContent,
                answer: nil,
                failures: [.notFound],
                handler: removeDevice
            ),
            APIRoute(
                method: .post,
                path: "/users/{user}/commands",
                id: "sendCommand",
                summary: "Send a command to the account's connected IMPB devices (notification 3); nothing is stored.",
                scope: .push,
                pathParameters: [APIRoute.user],
                body: .object([
                    Field("payload", Self.payload, required: true, "The application's own, at most 32 KiB.")
                ]),
                success: .accepted,
                answer: nil,
                failures: [.notFound],
                handler: sendCommand
            ),
        ]
    }

    var tokenRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/users/{user}/tokens",
                id: "listTokens",
                summary: "The tokens of an account's devices, the newest first. The server knows only their hashes.",
                scope: .usersRead,
                pathParameters: [APIRoute.user],
                success: .ok,
                answer: .object([
                    Field("tokens", .array(Self.token, count: 0...Int.max), required: true, "The newest first.")
                ]),
                failures: [.notFound],
                handler: listTokens
            ),
            APIRoute(
                method: .post,
                path: "/users/{user}/tokens",
                id: "issueToken",
                summary: "Issue a token with which one device of the account logs in without the password.",
                scope: .tokensWrite,
                pathParameters: [APIRoute.user],
                body: .object([
                    Field("device_id", Self.deviceID, required: true, "The device; registered if it is new."),
                    Field(
                        "device_name",
                        .string(length: 0 ... .max),
                        "For people; cut to \(DeviceDescription.maxNameBytes) bytes of UTF-8."
                    ),
                ]),
                success: .created,
                answer: .object([
                    Field("token", .string(length: 1...128), required: true, "Cannot be read again."),
                    Field("uid", Self.uid, required: true, "Whose it is."),
                    Field("device_id", Self.deviceID, required: true, "The token's device."),
                ]),
                failures: [.notFound, .conflict],
                handler: issueToken
            ),
            APIRoute(
                method: .delete,
                path: "/users/{user}/tokens",
                id: "revokeTokens",
                summary: "Revoke all tokens of an account and end its sessions; the password stays.",
                scope: .tokensWrite,
                pathParameters: [APIRoute.user],
                success: .noContent,
                answer: nil,
                failures: [.notFound],
                handler: revokeTokens
            ),
        ]
    }

    private static let device = APISchema.named(
        "Device",
        .object([
            Field("device_id", deviceID, required: true, "Chosen by the client."),
            Field("name", .string(length: 0 ... .max), required: true, "For people."),
            Field("platform", .string(length: 0 ... .max), required: true, "As the client said it."),
            Field("app_version", .string(length: 0 ... .max), required: true, "As the client said it."),
            Field("online", .boolean, required: true, "Whether it is connected."),
            Field("last_seen_ms", time, required: true, "In milliseconds since 1970."),
            Field("acknowledged_seq", .integer(0 ... .max), required: true, "The last inbox entry that it has taken."),
        ])
    )

    private static let token = APISchema.named(
        "Token",
        .object([
            Field("device_id", deviceID, required: true, "The device that logs in with it."),
            Field("issued_at_ms", time, required: true, "In milliseconds since 1970."),
        ])
    )

    private func listDevices(_ call: APICall) async throws -> APIAnswer {
        let user = try await account(of: call).id
        let online = await messenger.devices.connectedDevices(of: user)
        let devices = try await messenger.accounts.devices(of: user).map { device -> JSON in
            [
                "device_id": .string(device.description.id.rawValue),
                "name": .string(device.description.name),
                "platform": .string(device.description.platform),
                "app_version": .string(device.description.appVersion),
                "online": .boolean(online.contains(device.description.id)),
                "last_seen_ms": .integer(device.lastSeenAt.rawValue),
                "acknowledged_seq": .integer(device.cursor),
            ]
        }
        return APIAnswer(["devices": .array(devices)])
    }

    private func listTokens(_ call: APICall) async throws -> APIAnswer {
        let tokens = try await messenger.accounts.tokens(of: account(of: call).id).map { token -> JSON in
            [
                "device_id": .string(token.device.rawValue),
                "issued_at_ms": .integer(token.issuedAt.rawValue),
            ]
        }
        return APIAnswer(["tokens": .array(tokens)])
    }

    private func removeDevice(_ call: APICall) async throws -> APIAnswer {
        let user = try await account(of: call).id
        guard let device = DeviceID(call.pathParameters["device_id"] ?? "") else {
            throw APIProblem(.notFound, .notFound, "The account has no such device.")
        }
        try await messenger.accounts.removeDevice(device, of: user)
        return .empty
    }

    private static let maxCommandBytes = 32_768

    private func sendCommand(_ call: APICall) async throws -> APIAnswer {
        let user = try await account(of: call).id
        let bytes = Self.bytes(of: call.body["payload"] ?? .null)
        guard bytes.readableBytes <= Self.maxCommandBytes else {
            throw APIProblem(.contentTooLarge, .tooLarge, "A command has at most \(Self.maxCommandBytes) bytes.")
        }
        // The command is not stored, so a device that is not connected never gets it.
        _ = messenger.devices.notify(user, .command(Array(bytes.readableBytesView)))
        return .empty
    }

    private func issueToken(_ call: APICall) async throws -> APIAnswer {
        let user = try await account(of: call).id
        guard let id = call.body["device_id"]?.string.flatMap({ DeviceID($0) }) else {
            throw APIProblem(.unprocessableContent, .invalidArgument, "device_id is missing.")
        }
        let known = try await messenger.accounts.devices(of: user).first { $0.description.id == id }
        var device = known?.description ?? DeviceDescription(id: id)
        if let name = call.body["device_name"]?.string { device.name = name }
        let token = try await messenger.accounts.issueToken(for: device, of: user)
        return APIAnswer(["token": .string(token), "uid": .integer(user.rawValue), "device_id": .string(id.rawValue)])
    }

    private func revokeTokens(_ call: APICall) async throws -> APIAnswer {
        try await messenger.accounts.revokeTokens(of: account(of: call).id)
        return .empty
    }
}
