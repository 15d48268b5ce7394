// What each filter is asked beside its table: a moment of the time line, frames of the flame, growing sites, hot
// fragments, one site, and the lines of a file.

import { Dice } from "./dice.mjs";

const POINTS = 200;
/** The tree as the page first asks for it. */
const FLAME = { invert: false, focus: [], fold: true, min_share: 1 / 4096, most: 100_000 };

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
const siteKey = ({ name, file = "", line = 0, chars = [0, 0] }) => JSON.stringify([name, file, line, chars]);

/** An answer whose figures are exact, without what only the page has. */
function plain({ exact: _, trace: __, ...rest }) {
  return rest;
}

/** The time line at the end of one of its steps, against `report --at`. */
const timeLine = {
  name: "timeline",
  questions: ({ link, by }) => [{ link, kind: "timeline", more: { by, top: 8, points: POINTS } }],
  async compare({ trial, what, answers: [found], table, run, outcomes, info }) {
    const sums = new Map(table.table.rows.map((row) => [siteKey(row), row]));
    if (found.exact) {
      for (const { site, sum } of found.series) {
        const row = sums.get(siteKey(site));
        outcomes.same(`${what}: ${site.name}`, sum.samples, row?.samples);
      }
      outcomes.same(`${what}: peak`, [found.peak, found.peak_us], [table.totals.peak, table.totals.peak_us]);
    }
    const step = new Dice(trial.seed).below(found.times.length);
    const at = Math.min(found.times[step] - 1, info.duration_us);
    const then = await run.report(trial, "--at", `${at}us`, "--by", trial.by);
    const { live, low, high } = found.total;
    const total = { bytes: live[step], low: low[step], high: high[step] };
    if (!found.exact) {
      outcomes.near(`${what}: live at ${at} us`, total, then.table.total.bytes, true);
      return;
    }
    const { bytes, low: least, high: most } = then.table.total;
    outcomes.same(`${what}: live at ${at} us`, total, { bytes, low: least, high: most });
    if (info.blocks_one_in > 1) return;
    const rows = new Map(then.table.rows.map((row) => [siteKey(row), row.bytes]));
    for (const { site, live } of found.series) outcomes.same(`${what}: ${site.name} at ${at} us`, live[step], rows.get(siteKey(site)) ?? 0);
  },
};

/** Samples below the outermost cells of each name. */
function inclusive({ sites, cells }) {
  const found = new Map();
  const open = [];
  for (let cell = 1; cell < cells.parent.length; cell++) {
    while (open.length > 0 && open.at(-1).cell !== cells.parent[cell]) open.pop();
    const name = cells.site[cell] < 0 ? null : sites[cells.site[cell]].name;
    if (name !== null && !open.some((above) => above.name === name)) found.set(name, (found.get(name) ?? 0) + cells.samples[cell]);
    open.push({ cell, name });
  }
  return found;
}

/** Frames of the call tree and their panels, with all that they call, against `report --filter`. */
const frames = {
  name: "frames",
  questions: ({ link }) => [{ link: innermost(link), kind: "tree", more: { ...FLAME, by: "function" } }],
  /** Two of the frames that are seen. */
  then: ({ link, seed }, [tree]) => {
    const dice = new Dice(seed);
    const sites = (tree.sites ?? []).filter(({ name }) => name !== "" && !name.startsWith("(") && !name.includes(";"));
    const chosen = Array.from({ length: Math.min(2, sites.length) }, () => dice.of(sites));
    return chosen.map((site) => ({ link: innermost(link), kind: "site", more: { by: "function", site, levels: 3 } }));
  },
  async compare({ trial, what, answers: [tree, ...panels], table, run, outcomes }) {
    if (tree.exact) outcomes.same(`${what}: root`, tree.total, table.table.total);
    const cells = inclusive(tree);
    const isWhole = tree.cells.count.every((count) => count === 1);
    const truth = trial.metric === "peak" ? await belowAtPeak(trial, run) : belowWithFilter(trial, run);
    for (const [at, { total, exact }] of panels.entries()) {
      const { site } = trial.further[at].more;
      const expected = await truth(site.name);
      const below = `${what}: below ${site.name}`;
      // Two functions of one name in two files are one in the filter.
      const isAlone = tree.sites.filter(({ name }) => name === site.name).length === 1;
      if (exact && isWhole) sameSize(outcomes, `${below}, cells`, cells.get(site.name) * tree.scale, expected);
      if (exact && isWhole && isAlone) sameSize(outcomes, `${below}, panel`, total.bytes, expected);
      if (!exact) outcomes.near(below, total, expected.bytes);
    }
  },
};

/** In a flame each frame has what it allocates itself. */
const innermost = (link) => link.replace("sites=own", "sites=innermost");

function sameSize(outcomes, what, found, { bytes, rounding }) {
  if (Math.abs(found - bytes) > rounding) outcomes.fail(what, `the page has ${found}, the command line ${bytes}`);
}

const belowWithFilter = (trial, run) => async (name) => {
  const { total } = (await run.report(trial, ...trial.metricOptions, "--filter", `^${escaped(name)}$`)).table;
  return { bytes: total.bytes, rounding: 0 };
};

/** With one more filter the peak would be at another time: what the stacks of `export --to folded` have below each frame. */
async function belowAtPeak(trial, run) {
  const stacks = await run.text("export", "--to", "folded", "--no-fold", "--metric", "peak", ...trial.options, ...trial.timeOptions);
  const lines = stacks.split("\n").filter(Boolean).map((line) => /^(.*) (\d+)$/.exec(line)).map(([, names, bytes]) => [names.split(";"), Number(bytes)]);
  // Each stack is rounded to a byte.
  const rounding = 1 + lines.length;
  return async (name) => ({ bytes: lines.reduce((sum, [names, bytes]) => sum + (names.includes(name) ? bytes : 0), 0), rounding });
}

/** Sites that keep growing, against `heaptap leaks`. They show in the whole run, so the brush does not apply. */
const leaks = {
  name: "leaks",
  questions: ({ link }) => [{ link, kind: "leaks", more: {} }],
  async compare({ trial, what, answers: [found], run, outcomes }) {
    if (found.exact === false) return;
    const expected = await run.command("leaks", "--json", "--sites", trial.sites, ...trial.options);
    const without = ({ growth: _, ...leak }) => leak;
    outcomes.same(what, { ...plain(found), leaks: found.leaks.map(without) }, plain(expected));
  },
};

/** Hot fragments, against `heaptap hot`. */
const hot = {
  name: "hot",
  questions: ({ link }) => [{ link, kind: "hot", more: { by: "function" } }],
  async compare({ trial, what, answers: [found], run, outcomes }) {
    const expected = await run.command("hot", "--json", "--by", "function", ...trial.metricOptions, ...trial.options, ...trial.timeOptions);
    // `hot` joins rare call paths, and says so; the page has their callers.
    const isWhole = expected.limits.samples_missing === 0;
    if (found.exact && isWhole) outcomes.same(what, plain(found), plain(expected));
    else if (found.exact) outcomes.same(`${what}: total`, found.total, expected.total);
    else outcomes.near(`${what}: total`, found.total, expected.total.bytes);
  },
};

/** The lines of a file, against `report --by location`. */
const source = {
  name: "source",
  questions: ({ link, seed }, { files }) => (files.length === 0 ? [] : [{ link, kind: "source", more: { file: new Dice(seed).of(files) } }]),
  async compare({ trial, what, answers: [found], run, outcomes }) {
    if (!found) return;
    const { table } = await run.report(trial, ...trial.metricOptions, "--by", "location");
    const lines = new Map();
    for (const { file = "", line = 0, samples } of table.rows) {
      if (file === found.file) lines.set(line, (lines.get(line) ?? 0) + samples);
    }
    const seen = found.lines.filter(({ sum }) => sum.samples > 0);
    if (found.exact) outcomes.same(`${what}: ${found.file}`, seen.map(({ line, sum }) => [line, sum.samples]), [...lines].sort(([one], [other]) => one - other));
  },
};

export const ASPECTS = [timeLine, frames, leaks, hot, source];
