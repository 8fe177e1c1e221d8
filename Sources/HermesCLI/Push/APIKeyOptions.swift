// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// The source of the API key. The key is never on the command line, where other users could see it.
struct APIKeyOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Read the API key from this file.", valueName: "file"))
    var keyFile: String?

    /// Reads the key.
    func read() throws(ClientFailure) -> String {
        if let keyFile {
            let data: Data
            do throws(UnreadableFile) {
                data = try SecretFile.read(keyFile)
            } catch {
                throw ClientFailure("--key-file \(keyFile) cannot be read: \(error)", exitCode: ExitCode(66))
            }
            let key = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            guard key.hasPrefix("hk_") else {
                throw ClientFailure("--key-file \(keyFile): holds no API key (hk_…)", exitCode: ExitCode(65))
            }
            return key
        }
        guard let key = ProcessInfo.processInfo.environment["HERMES_API_KEY"], !key.isEmpty else {
            throw ClientFailure(
                "no API key: give --key-file or HERMES_API_KEY; "
                    + "create a key with \"hermes apikey create NAME --scopes push\"",
                exitCode: ExitCode(77)
            )
        }
        return key
    }
}
