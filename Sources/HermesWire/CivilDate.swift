// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Dates of the Gregorian calendar.
package enum CivilDate {
    /// Returns the number of days from 1970-01-01 to a date. In the calculation, years begin in March, so that the
    /// leap day is the last day of a year (Howard Hinnant, "chrono-compatible low-level date algorithms").
    ///
    /// - Parameters:
    ///   - year: 0 or later.
    ///   - month: 1 … 12.
    ///   - day: 1 … 31. A day after the end of the month counts as a day of the next month.
    package static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = shiftedYear / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
