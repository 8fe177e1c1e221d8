// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// Invitations to register.
extension APICore {
    private typealias Field = APISchema.Field

    private static let name = APISchema.text(
        bytes: 1...InvitationService.maxNameCharacters,
        APISchema.StringForm(pattern: "^[!-~]+$", meaning: "printable ASCII without blanks") {
            $0.unicodeScalars.allSatisfy { (0x21...0x7E).contains($0.value) }
        }
    )

    private static let invitation = APIRoute.Parameter(
        "invitation",
        name,
        required: true,
        "The invitation's name."
    )

    var invitationRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/invitations",
                id: "listInvitations",
                summary: "All invitations, including used-up and expired ones.",
                scope: .usersRead,
                success: .ok,
                answer: .object([
                    Field(
                        "invitations",
                        .array(Self.schema, count: 0...Int.max),
                        required: true,
                        "Oldest first."
                    )
                ]),
                handler: listInvitations
            ),
            APIRoute(
                method: .post,
                path: "/invitations",
                id: "createInvitation",
                summary: "Create an invitation. Registration needs one if accounts.registration is \"invitation\".",
                scope: .usersWrite,
                body: .object([
                    Field("name", Self.name, required: true, "The invitation's name; it must be unique."),
                    Field(
                        "uses",
                        .integer(1...Int64(InvitationService.maxUses)),
                        "How many accounts it is valid for; 1 if absent."
                    ),
                    Field(
                        "days",
                        .integer(0...Int64(InvitationService.maxDays)),
                        "How many days it is valid for; 0: until it is used up or revoked; 30 if absent."
                    ),
                ]),
                success: .created,
                answer: .object([
                    Field("code", .string(length: 1...64), required: true, "Cannot be read again."),
                    Field("invitation", Self.schema, required: true, "The created invitation."),
                ]),
                failures: [.conflict],
                handler: createInvitation
            ),
            APIRoute(
                method: .delete,
                path: "/invitations/{invitation}",
                id: "revokeInvitation",
                summary: "Take an invitation back; accounts that were made with it stay.",
                scope: .usersWrite,
                pathParameters: [Self.invitation],
                success: .noContent,
                answer: nil,
                failures: [.notFound],
                handler: revokeInvitation
            ),
        ]
    }

    private static let schema = APISchema.named(
        "Invitation",
        .object([
            Field("name", name, required: true, "The invitation's name."),
            Field("uses", .integer(1 ... .max), required: true, "How many accounts it is valid for."),
            Field("used", .integer(0 ... .max), required: true, "How many accounts were created with it."),
            Field("created_at_ms", time, required: true, "In milliseconds since 1970."),
            Field("expires_at_ms", time, "In milliseconds since 1970; absent: never."),
        ])
    )

    private func document(of invitation: Invitation) -> JSON {
        .members([
            "name": .string(invitation.name),
            "uses": .integer(invitation.uses),
            "used": .integer(invitation.used),
            "created_at_ms": .integer(invitation.createdAt.rawValue),
            "expires_at_ms": invitation.expiresAt.map { .integer($0.rawValue) },
        ])
    }

    private func listInvitations(_ call: APICall) async throws -> APIAnswer {
        let invitations = try await messenger.accounts.invitations.invitations()
        return APIAnswer(["invitations": .array(invitations.map(document))])
    }

    private func createInvitation(_ call: APICall) async throws -> APIAnswer {
        let made = try await messenger.accounts.invitations.create(
            name: call.body["name"]?.string ?? "",
            uses: call.body["uses"]?.integer.flatMap { Int(exactly: $0) } ?? 1,
            days: call.body["days"]?.integer.flatMap { Int(exactly: $0) } ?? 30
        )
        return APIAnswer(["code": .string(made.code), "invitation": document(of: made.invitation)])
    }

    private func revokeInvitation(_ call: APICall) async throws -> APIAnswer {
        try await messenger.accounts.invitations.revoke(name: call.pathParameters["invitation"] ?? "")
        return .empty
    }
}
