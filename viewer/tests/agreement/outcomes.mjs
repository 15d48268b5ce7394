// Compares what the page answers with what the command line says, and counts what came of it.

import assert from "node:assert/strict";

/** What an interval of the page may be off, as a multiple of itself: one in 250 million is further. */
const WIDEST = 3;

export class Outcomes {
  constructor(trace) {
    this.trace = trace;
    this.counts = { exact: 0, inexact: 0, refused: 0, nothing: 0, far: 0, intervals: 0 };
    this.of = {};
    this.wrong = [];
  }

  note(outcome, kind) {
    this.counts[outcome] += 1;
    this.of[kind] = (this.of[kind] ?? 0) + 1;
  }

  fail(what, message) {
    this.wrong.push(`${this.trace}: ${what}\n    ${message}`);
  }

  /** Both have the same figures, to the last digit. */
  same(what, found, expected) {
    try {
      assert.deepEqual(found, expected);
      return true;
    } catch (error) {
      this.fail(what, firstDifference(found, expected) ?? error.message);
      return false;
    }
  }

  /** A figure that states its error contains the true one: in its interval, nearly always, and never far from it. */
  near(what, found, truth, isCounted = false) {
    if (found === null || found === undefined) return;
    const { bytes, low, high } = found;
    const [lowest, highest] = [bytes - WIDEST * (bytes - low), bytes + WIDEST * (high - bytes)];
    const slack = 1e-9 * Math.max(1, truth);
    if (truth < lowest - slack || truth > highest + slack) this.fail(what, `says ${bytes} (${low} to ${high}), report ${truth}`);
    if (!isCounted) return;
    this.counts.intervals += 1;
    if (truth < low - slack || truth > high + slack) this.counts.far += 1;
  }

  /** Nothing is wrong, and of the intervals no more than one in twenty is off, by four sigma. */
  check() {
    const { far, intervals } = this.counts;
    const most = Math.max(3, 0.05 * intervals + 4 * Math.sqrt(0.05 * intervals));
    if (far > most) this.fail("intervals", `${far} of ${intervals} do not have the figure of report`);
    const count = this.wrong.length;
    assert.equal(count, 0, `${count} figures disagree with the command line:\n${this.wrong.slice(0, 20).join("\n")}`);
  }
}

/** Where two values differ first, as a path. */
export function firstDifference(found, expected, path = "") {
  if (typeof found !== "object" || typeof expected !== "object" || found === null || expected === null) {
    return Object.is(found, expected) ? null : `${path || "."}: the page has ${JSON.stringify(found)}, the command line ${JSON.stringify(expected)}`;
  }
  for (const key of new Set([...Object.keys(found), ...Object.keys(expected)])) {
    const difference = firstDifference(found[key], expected[key], `${path}.${key}`);
    if (difference !== null) return difference;
  }
  return null;
}
