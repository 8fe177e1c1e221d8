// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension InboxJournal {
    /// The account that logged in last.
    struct Account: Hashable, Sendable {
        var uid: UInt32
        var nickName: String
        /// The hash of the last token, which recognizes the token without storing it.
        var tokenHash: UInt64

        init(uid: UInt32, nickName: String, tokenHash: UInt64) {
            self.uid = uid
            self.nickName = nickName
            self.tokenHash = tokenHash
        }

        init(_ session: Session) {
            self.init(
                uid: session.uid.rawValue,
                nickName: session.nickName,
                tokenHash: Self.hash(session.token)
            )
        }

        /// Whether the credential seems to belong to this account. A name and a password may belong to another account
        /// that now has the name.
        func mayOwn(_ credential: Credential) -> Bool {
            guard case .password(let nickName, _) = credential else { return owns(credential) }
            return nickName.lowercased() == self.nickName.lowercased()
        }

        /// Whether the credential certainly belongs to this account.
        func owns(_ credential: Credential) -> Bool {
            switch credential {
            // Another account may have the name now.
            case .register, .password: false
            case .token(let token): Self.hash(token) == tokenHash
            }
        }

        /// Returns the FNV-1a hash of a token. The hash distinguishes random tokens, and a token cannot be recovered
        /// from it.
        static func hash(_ token: String) -> UInt64 {
            token.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        }
    }
}

/// The form in the store.
extension InboxJournal.Account {
    init?(_ buffer: ByteBuffer) {
        var buffer = buffer
        guard let uid = buffer.readInteger(as: UInt32.self), let hash = buffer.readInteger(as: UInt64.self),
            let name = buffer.readString(length: buffer.readableBytes)
        else { return nil }
        self.init(uid: uid, nickName: name, tokenHash: hash)
    }

    var stored: [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeInteger(uid)
        buffer.writeInteger(tokenHash)
        buffer.writeString(nickName)
        return Array(buffer.readableBytesView)
    }
}
