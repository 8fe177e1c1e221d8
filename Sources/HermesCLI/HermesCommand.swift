// Hermes
// SPDX-License-Identifier: Apache-2.0

@main
struct HermesCommand {
    static func main() {}
}
