// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import HermesCore

extension StoreSchema {
    /// Adds the identity of each push token (``PushToken/identity``). If several devices have the same token in
    /// different spellings, only the device that set it last keeps it.
    @Sendable static func identifyPushTokens(_ db: Database) throws {
        try db.execute(
            sql: """
                ALTER TABLE push_token ADD COLUMN identity TEXT NOT NULL DEFAULT '';
                DROP INDEX push_token_text;
                CREATE INDEX push_token_identity ON push_token (identity, service);
                """
        )
        try updateIdentities(db)
    }

    /// Writes the identities of all push tokens by the present rule, and takes tokens from their former devices.
    static func updateIdentities(_ db: Database) throws {
        let identity = DatabaseFunction("push_token_identity", argumentCount: 2, pure: true) { values in
            let text = String.fromDatabaseValue(values[1]) ?? ""
            // A damaged row keeps its text.
            let number = Int64.fromDatabaseValue(values[0]).flatMap { UInt8(exactly: $0) }
            guard let service = number.flatMap(PushToken.Service.init(rawValue:)) else { return text }
            return PushToken(stored: service, text: text, appID: "").identity
        }
        db.add(function: identity)
        try db.execute(
            sql: """
                UPDATE push_token SET identity = push_token_identity(service, token);
                DELETE FROM push_token WHERE EXISTS (
                    SELECT 1 FROM push_token o WHERE o.identity = push_token.identity
                        AND o.service = push_token.service AND (o.set_at, o.user, o.device_id)
                            > (push_token.set_at, push_token.user, push_token.device_id));
                """
        )
        db.remove(function: identity)
    }
}
