// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
internal import GRDB
package import HermesCore

extension SQLiteStore: AdministratorStore {
    package func create(_ administrator: Administrator) async throws(HermesError) {
        try await write { (db, _) in
            do {
                try db.execute(
                    sql: """
                        INSERT INTO administrator (name, role, password, totp, totp_step, recovery, created_at, last_login_at)
                        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                        """,
                    arguments: [
                        administrator.name.rawValue, administrator.role.rawValue, administrator.password.phc,
                        administrator.secondFactor.map { Data($0.secret) }, administrator.usedStep,
                        Self.text(administrator.secondFactor?.recovery ?? []), administrator.createdAt.rawValue,
                        administrator.lastLoginAt?.rawValue,
                    ]
                )
            } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CONSTRAINT_PRIMARYKEY {
                throw StoreRefusals.administratorNameTaken
            }
        }
    }

    package func administrators() async throws(HermesError) -> [Administrator] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM administrator ORDER BY name").compactMap(Self.administrator)
        }
    }

    package func administrator(_ name: AdministratorName) async throws(HermesError) -> Administrator? {
        try await read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM administrator WHERE name = ?", arguments: [name.rawValue])
                .flatMap(Self.administrator)
        }
    }

    package func change(_ name: AdministratorName, _ change: AdministratorChange) async throws(HermesError) {
        try await write { (db, _) in
            let (columns, arguments): (String, StatementArguments) =
                switch change {
                case .password(let hash): ("password = ?", [hash.phc])
                case .renewedPassword(let hash, let old):
                    ("password = CASE password WHEN ? THEN ? ELSE password END", [old.phc, hash.phc])
                case .role(let role): ("role = ?", [role.rawValue])
                case .secondFactor(let factor):
                    (
                        "totp = ?, totp_step = 0, recovery = ?",
                        [factor.map { Data($0.secret) }, Self.text(factor?.recovery ?? [])]
                    )
                case .loggedIn(let time): ("last_login_at = ?", [time.rawValue])
                }
            try db.execute(
                sql: "UPDATE administrator SET \(columns) WHERE name = ?",
                arguments: arguments + [name.rawValue]
            )
            guard db.changesCount > 0 else { throw StoreRefusals.noSuchAdministrator }
        }
    }

    package func use(_ code: OneTimeCode, of name: AdministratorName) async throws(HermesError) -> Bool {
        try await write { (db, _) in
            switch code {
            case .step(let step):
                try db.execute(
                    sql: "UPDATE administrator SET totp_step = ? WHERE name = ? AND totp_step < ?",
                    arguments: [step, name.rawValue, step]
                )
            case .recovery(let hash):
                let text = Self.text([hash])
                try db.execute(
                    sql: """
                        UPDATE administrator SET recovery = replace(recovery, ?, '')
                        WHERE name = ? AND instr(recovery, ?) > 0
                        """,
                    arguments: [text, name.rawValue, text]
                )
            }
            return db.changesCount > 0
        }
    }

    package func remove(administrator name: AdministratorName) async throws(HermesError) {
        try await write { (db, _) in
            try NamedSecret.delete(
                from: "administrator",
                named: name.rawValue,
                in: db,
                missing: StoreRefusals.noSuchAdministrator
            )
        }
    }

    package func record(
        _ event: AuditEvent,
        at now: Timestamp,
        keeping limits: AuditLimits
    ) async throws(HermesError) {
        try await write { (db, _) in
            try db.execute(
                sql: """
                    INSERT INTO audit (time, who, address, action, target, result, code, is_refused)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    now.rawValue, event.who, event.address, event.action, event.target, event.result,
                    event.code?.rawValue ?? 0, event.isRefused,
                ]
            )
            try db.execute(
                sql: """
                    DELETE FROM audit WHERE is_refused = ?1 AND id <=
                        (SELECT id FROM audit WHERE is_refused = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)
                    """,
                arguments: [event.isRefused, event.isRefused ? limits.maxRefused : limits.maxDone]
            )
            if let age = limits.age {
                try db.execute(
                    sql: "DELETE FROM audit WHERE time < ?",
                    arguments: [now.advanced(by: .zero - age).rawValue]
                )
            }
        }
    }

    package func auditLog(before id: Int64?, limit: Int) async throws(HermesError) -> [AuditEntry] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: "SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?",
                arguments: [id ?? .max, limit]
            )
            .map { row in
                AuditEntry(
                    id: row["id"],
                    time: Timestamp(rawValue: row["time"]),
                    event: AuditEvent(
                        who: row["who"],
                        address: row["address"],
                        action: row["action"],
                        target: row["target"],
                        result: row["result"],
                        code: UInt32(exactly: row["code"] as Int64)
                            .flatMap { $0 == 0 ? nil : HermesError.Code(rawValue: $0) },
                        isRefused: row["is_refused"]
                    )
                )
            }
        }
    }

    /// Reads an administrator. Returns nil if only a newer version knows the role, so that this version grants no
    /// rights for this role.
    private static func administrator(_ row: Row) -> Administrator? {
        guard let name = try? AdministratorName(row["name"]), let role = AdministratorRole(rawValue: row["role"]) else {
            return nil
        }
        return Administrator(
            name: name,
            role: role,
            password: PasswordHash(phc: row["password"]),
            secondFactor: (row["totp"] as Data?).map { secret in
                SecondFactor(secret: Array(secret), recovery: hashes(row["recovery"]))
            },
            usedStep: row["totp_step"],
            createdAt: Timestamp(rawValue: row["created_at"]),
            lastLoginAt: (row["last_login_at"] as Int64?).map(Timestamp.init(rawValue:))
        )
    }

    private static func text(_ hashes: [TokenHash]) -> String {
        hashes.map { $0.bytes.hexDigits + " " }.joined()
    }

    private static func hashes(_ text: String) -> [TokenHash] {
        text.split(separator: " ").map { word in
            let digits = word.utf8.map { UInt8(String(UnicodeScalar($0)), radix: 16) ?? 0 }
            let bytes = stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
            return TokenHash(bytes: bytes)
        }
    }
}
