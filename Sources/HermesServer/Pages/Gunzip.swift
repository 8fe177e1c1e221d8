// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Unpacks what gzip packed (RFC 1952, RFC 1951): the files of the pages, for clients that take no gzip.
///
/// It looks up codes bit by bit, which is slow but short: each file is unpacked once in the life of the process.
struct Gunzip {
    /// The data is cut, or is not what gzip writes without a name and further fields.
    struct Malformed: Error {}

    /// A code of canonical lengths (RFC 1951, section 3.2.2).
    private struct Code {
        /// How many symbols have a code of each length, 0 to 15.
        private var counts = [Int](repeating: 0, count: 16)
        /// The symbols, ordered by their codes.
        private var symbols: [Int] = []

        init(lengths: some Sequence<Int>) {
            let lengths = Array(lengths)
            for length in lengths { counts[length] += 1 }
            for length in 1...15 {
                for (symbol, its) in lengths.enumerated() where its == length { symbols.append(symbol) }
            }
        }

        func symbol(from reader: inout Gunzip) throws(Malformed) -> Int {
            var code = 0
            var first = 0
            var index = 0
            for length in 1...15 {
                code |= try reader.bits(1)
                let offset = code - first
                if offset < counts[length] { return symbols[index + offset] }
                index += counts[length]
                first = (first + counts[length]) << 1
                code <<= 1
            }
            throw Malformed()
        }
    }

    /// What a length or distance symbol stands for (RFC 1951, section 3.2.5): the base, and the number of further bits.
    private static let lengths: [(base: Int, bits: Int)] = {
        var base = 3
        var all: [(base: Int, bits: Int)] = []
        for symbol in 0..<28 {
            let bits = symbol < 8 ? 0 : symbol / 4 - 1
            all.append((base, bits))
            base += 1 << bits
        }
        return all + [(258, 0)]
    }()
    private static let distances: [(base: Int, bits: Int)] = {
        var base = 1
        var all: [(base: Int, bits: Int)] = []
        for symbol in 0..<30 {
            let bits = symbol < 4 ? 0 : symbol / 2 - 1
            all.append((base, bits))
            base += 1 << bits
        }
        return all
    }()
    /// The order in which the lengths of the codes of code lengths come (RFC 1951, section 3.2.7).
    private static let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    private let input: [UInt8]
    private var position = 0
    /// The bits of the last byte that are not taken yet, the lowest first.
    private var held = 0
    private var heldCount = 0
    private var output: [UInt8] = []

    /// - Parameter data: one member of gzip, as `scripts/embed-web` writes it.
    static func bytes(of data: [UInt8]) throws(Malformed) -> [UInt8] {
        var reader = Gunzip(input: data)
        return try reader.member()
    }

    private init(input: [UInt8]) { self.input = input }

    private mutating func member() throws(Malformed) -> [UInt8] {
        // Deflate, and none of the optional fields of the header.
        guard input.count >= 18, input.starts(with: [0x1f, 0x8b, 8, 0]) else { throw Malformed() }
        position = 10
        var isLast = false
        while !isLast {
            isLast = try bits(1) == 1
            switch try bits(2) {
            case 0: try stored()
            case 1: try compressed(Self.fixedLiterals, Self.fixedDistances)
            case 2:
                let (literals, distances) = try codes()
                try compressed(literals, distances)
            default: throw Malformed()
            }
        }
        // The check sum is left out: the data is part of the program. The length tells a wrong turn above.
        guard position + 8 == input.count else { throw Malformed() }
        let length = input.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        guard length == output.count else { throw Malformed() }
        return output
    }

    private mutating func byte() throws(Malformed) -> Int {
        guard position < input.count else { throw Malformed() }
        defer { position += 1 }
        return Int(input[position])
    }

    /// - Parameter count: at most 16.
    private mutating func bits(_ count: Int) throws(Malformed) -> Int {
        while heldCount < count {
            held |= try byte() << heldCount
            heldCount += 8
        }
        defer {
            held >>= count
            heldCount -= count
        }
        return held & (1 << count - 1)
    }

    private mutating func stored() throws(Malformed) {
        held = 0
        heldCount = 0
        let count = try bits(16)
        guard try bits(16) == ~count & 0xffff, position + count <= input.count else { throw Malformed() }
        output += input[position..<position + count]
        position += count
    }

    private static let fixedLiterals = Code(
        lengths: (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 }
    )
    private static let fixedDistances = Code(lengths: repeatElement(5, count: 30))

    /// The codes that a block brings with it.
    private mutating func codes() throws(Malformed) -> (literals: Code, distances: Code) {
        let literalCount = try bits(5) + 257
        let distanceCount = try bits(5) + 1
        let orderCount = try bits(4) + 4
        var ordered = [Int](repeating: 0, count: 19)
        for index in 0..<orderCount { ordered[Self.order[index]] = try bits(3) }
        let code = Code(lengths: ordered)
        var lengths: [Int] = []
        while lengths.count < literalCount + distanceCount {
            let symbol = try code.symbol(from: &self)
            switch symbol {
            case 16:
                guard let last = lengths.last else { throw Malformed() }
                lengths += repeatElement(last, count: try bits(2) + 3)
            case 17: lengths += repeatElement(0, count: try bits(3) + 3)
            case 18: lengths += repeatElement(0, count: try bits(7) + 11)
            default: lengths.append(symbol)
            }
        }
        guard lengths.count == literalCount + distanceCount else { throw Malformed() }
        return (Code(lengths: lengths.prefix(literalCount)), Code(lengths: lengths.dropFirst(literalCount)))
    }

    private mutating func compressed(_ literals: Code, _ distances: Code) throws(Malformed) {
        while true {
            let symbol = try literals.symbol(from: &self)
            if symbol == 256 { return }
            guard symbol > 256 else {
                output.append(UInt8(symbol))
                continue
            }
            guard symbol - 257 < Self.lengths.count else { throw Malformed() }
            let length = Self.lengths[symbol - 257]
            let count = length.base + (try bits(length.bits))
            let distanceSymbol = try distances.symbol(from: &self)
            guard distanceSymbol < Self.distances.count else { throw Malformed() }
            let distance = Self.distances[distanceSymbol]
            let back = distance.base + (try bits(distance.bits))
            guard back <= output.count else { throw Malformed() }
            // Byte by byte: what is copied may reach into what is written.
            for _ in 0..<count { output.append(output[output.count - back]) }
        }
    }
}
