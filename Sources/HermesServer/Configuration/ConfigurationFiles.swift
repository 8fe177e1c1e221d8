// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import Logging
import NIOSSL

/// Reads the files that a configuration names, as the server does when it starts, and reports all problems with them.
/// It starts nothing, and keeps nothing that it has read.
enum ConfigurationFiles {
    /// Returns the problems, one sentence each, with the setting, the file and, if there is one, the line.
    static func problems(of settings: ServerSettings) async -> [String] {
        var problems: [String] = []
        let others = [("http", settings.http.listener), ("console", settings.console.listener)]
        for (name, listener) in settings.gateways.listeners.map({ ($0.name, $0.settings) }) + others
        where listener.isEnabled {
            if let tls = listener.tls { problems += self.problems(of: tls, name) }
        }
        problems += self.problems(of: settings.gateways.access)
        return await problems + OutboundServices.problems(of: settings)
    }

    /// Returns the problems with the dates of certificates and revocation lists. The server uses these files
    /// nevertheless.
    ///
    /// - Parameter now: the present time in seconds since 1970.
    static func warnings(
        of settings: ServerSettings,
        now: Int = Int(Date().timeIntervalSince1970)
    ) -> [String] {
        let others = [("http", settings.http.listener), ("console", settings.console.listener)]
        let listeners = settings.gateways.listeners.map { ($0.name, $0.settings) } + others
        return listeners.flatMap { name, listener -> [String] in
            guard listener.isEnabled, let tls = listener.tls, let box = try? TLSContextBox(tls) else { return [] }
            var warnings: [String] = []
            if let problem = box.certificateProblem(now: now) {
                warnings.append("listeners.\(name).tls.certificate: \"\(tls.certificatePath)\": \(problem)")
            }
            if box.isRevocationOutdated(now: now), let path = tls.revocationListPath {
                warnings.append("listeners.\(name).tls.revocationLists: \"\(path)\": a list is out of date")
            }
            return warnings
        }
    }

    // MARK: TLS

    /// Returns the problems with the single files, which may be missing, unreadable, empty or damaged.
    static func fileProblems(of tls: TLSSettings, _ name: String) -> [String] {
        let prefix = "listeners.\(name).tls"
        var problems: [String?] = [
            problem(ofCertificates: tls.certificatePath, "\(prefix).certificate", isChain: true),
            problem(ofKey: tls.privateKeyPath, "\(prefix).privateKey"),
        ]
        if let path = tls.clientAuthorityPath {
            problems.append(problem(ofCertificates: path, "\(prefix).clientAuthority", isChain: false))
        }
        return problems.compactMap(\.self)
    }

    private static func problems(of tls: TLSSettings, _ name: String) -> [String] {
        let found = fileProblems(of: tls, name)
        guard found.isEmpty else { return found }
        do {
            // Checks that the key and the certificate belong together. Also checks the revocation lists, which need the
            // authorities.
            _ = try TLSContextBox(tls)
            return []
        } catch {
            return [ServerFailure.badCertificate(name, tls, error).message]
        }
    }

    /// - Parameter isChain: whether the file holds the server's own chain.
    private static func problem(ofCertificates path: String, _ key: String, isChain: Bool) -> String? {
        if let obstacle = obstacle(path, key) { return obstacle }
        let blocks: [PEMBlock]
        do { blocks = try PEMBlock.blocks(inFile: path) } catch { return unreadable(path, key, error) }
        let certificates = blocks.filter { $0.label.hasSuffix("CERTIFICATE") }
        guard !certificates.isEmpty else { return "\(key): \"\(path)\" holds no \"-----BEGIN CERTIFICATE-----\"" }
        if isChain, certificates.count > TLSFile.maxChain {
            return "\(key): \"\(path)\" holds \(TLSFile.tooMany(certificates.count))"
        }
        for block in certificates where (try? NIOSSLCertificate(bytes: Array(block.text.utf8), format: .pem)) == nil {
            return "\(key): \"\(path)\", line \(block.line): the certificate is incomplete or damaged"
        }
        return nil
    }

    private static func problem(ofKey path: String, _ key: String) -> String? {
        if let obstacle = obstacle(path, key) { return obstacle }
        let blocks: [PEMBlock]
        do { blocks = try PEMBlock.blocks(inFile: path) } catch { return unreadable(path, key, error) }
        guard let block = blocks.first(where: { $0.label.hasSuffix("PRIVATE KEY") }) else {
            return "\(key): \"\(path)\" holds no \"-----BEGIN PRIVATE KEY-----\""
        }
        if block.label.hasPrefix("ENCRYPTED") || block.text.contains("ENCRYPTED") {
            return "\(key): \"\(path)\", line \(block.line): the key is encrypted; remove its password: "
                + "openssl pkey -in FILE"
        }
        guard (try? TLSFile.key(path)) != nil else {
            return "\(key): \"\(path)\", line \(block.line): the private key is incomplete or damaged"
        }
        return nil
    }

    private static func unreadable(_ path: String, _ key: String, _ error: any Error) -> String {
        "\(key): \"\(AbsolutePath.of(path))\" cannot be read: \(error)"
    }

    /// Returns the reason why a path does not lead to a file with contents; nil if it does.
    private static func obstacle(_ path: String, _ key: String) -> String? {
        let place = "\(key): \"\(AbsolutePath.of(path))\""
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
            return "\(place) does not exist, or its directory cannot be read"
        }
        if isDirectory.boolValue { return "\(place) is a directory" }
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: target)
        let size = attributes?[.size] as? NSNumber
        guard attributes?[.type] as? FileAttributeType == .typeRegular, size?.intValue == 0 else { return nil }
        return "\(place) is empty"
    }

    // MARK: Access

    private static func problems(of access: AccessSettings) -> [String] {
        let silent = Logger(label: "hermes") { _ in SwiftLogNoOpLogHandler() }
        var (rules, tokens) = (access, access)
        rules.tokens = nil
        tokens.rulesPath = nil
        var problems: [String] = []
        for part in [rules, tokens] {
            do throws(ServerFailure) {
                _ = try AccessFiles(part, logger: silent)
            } catch {
                problems.append(error.message)
            }
        }
        return problems
    }
}

/// A block of a PEM file (RFC 7468), and its position in the file.
struct PEMBlock: Hashable {
    /// The label of the block, such as "CERTIFICATE".
    let label: String
    /// The number of the block's first line, counted from 1.
    let line: Int
    /// The block with its BEGIN line and its END line; a block that is cut off has no END line.
    let text: String

    /// - Throws: the reason why the file cannot be read.
    static func blocks(inFile path: String) throws -> [PEMBlock] {
        blocks(in: String(decoding: try BoundedFile.read(path, maxBytes: TLSFile.maxBytes), as: UTF8.self))
    }

    static func blocks(in text: String) -> [PEMBlock] {
        var blocks: [PEMBlock] = []
        var label: String?
        var first = 0
        var lines: [String] = []
        func end() {
            guard let open = label else { return }
            blocks.append(PEMBlock(label: open, line: first, text: lines.joined(separator: "\n") + "\n"))
            label = nil
        }
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.hasPrefix("-----BEGIN ") {
                end()
                label = String(line.dropFirst("-----BEGIN ".count)).replacingOccurrences(of: "-----", with: "")
                first = index + 1
                lines = []
            }
            if label != nil { lines.append(line) }
            if line.hasPrefix("-----END ") { end() }
        }
        end()
        return blocks
    }
}
