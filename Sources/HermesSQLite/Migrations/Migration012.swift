// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

extension StoreSchema {
    @Sendable static func indexWebhooks(_ db: Database) throws {
        try db.execute(
            sql: """
                -- What is due comes in the order of both columns; and an event looks for those that it waits for.
                DROP INDEX webhook_due;
                CREATE INDEX webhook_due ON webhook (due, number);
                DROP INDEX webhook_of_user;
                CREATE INDEX webhook_in_line ON webhook (user, number) WHERE attempts < \(WebhookEvent.attemptsInOrder);
                """
        )
    }
}
