"""The words that the lines of flat.ml allocate."""

import csv

# The words of each line: the number of blocks times their fields and header.
FLAT = {8: 1_000 * 3, 11: 700 * 2, 14: 300 * 11, 17: 20 * 1_001, 23: 50 * 9}


def words_of_lines(bench, lines):
    """The words of these lines in the report by location."""
    report = bench.run(bench.heaptap, "report", "--by", "location", "--top", "0", "--csv", "trace.ctf")
    words = dict.fromkeys(lines, 0)
    for row in csv.DictReader(report.out.splitlines()):
        if row["file"] == "flat.ml" and int(row["line"]) in words:
            words[int(row["line"])] += int(row["bytes"]) // 8
    return words
