// Random filters on two traces: the page's comparison, table and tree, against `heaptap diff`.

import { exported, json } from "../browser.mjs";
import { Dice } from "./dice.mjs";
import { namesOf, randomFilter } from "./filters.mjs";
import { Outcomes } from "./outcomes.mjs";
import { withClient } from "./pages.mjs";
import { describe } from "./trial.mjs";

/** The page shows so many rows. */
const ROWS = 200;

const TREE = { by: "function", invert: false, focus: [], fold: true, min_share: 0, most: 100_000 };

export async function compareDiffs(before, after, { filters, seed }) {
  const outcomes = new Outcomes("diff");
  await withClient(await exported(before, after), "none", async (client) => {
    const [names] = await client.answers([{ link: "#diff&trace=1", kind: "names", more: { text: "", most: 1000 } }]);
    const dice = new Dice(seed);
    for (let count = 0; count < filters; count++) {
      const trial = randomFilter(dice, namesOf(names), client.traces[1].info);
      const chips = await client.chips(trial.chips);
      const at = trial.metric === "at" ? [`at=${trial.at}`] : [];
      const link = `#diff&trace=1&before=0&metric=${trial.metric}&${[...at, `sites=${trial.sites}`, ...chips].join("&")}`;
      const [table, tree] = await client.answers([
        { link, kind: "diff", more: { by: trial.by, top: ROWS } },
        { link, kind: "diff_tree", more: TREE },
      ]);
      const options = ["--by", trial.by, "--sites", trial.sites, ...trial.metricOptions, ...trial.options, ...trial.timeOptions];
      const expected = await json("diff", "--json", "--top", String(ROWS), ...options, before, after);
      outcomes.note(expected.changes.length === 0 ? "nothing" : "exact", trial.kinds);
      const figures = ({ exact: _, before: __, after: ___, ...rest }) => rest;
      const what = describe({ ...trial, link });
      outcomes.same(what, figures(table), figures(expected));
      compareRoots(outcomes, what, tree, expected.total);
    }
  });
  console.log(`diff: ${JSON.stringify({ ...outcomes.counts, ...outcomes.of })}`);
  outcomes.check();
}

/** The root of the tree says of the total what the sentence above it says. */
function compareRoots(outcomes, what, { cells, error }, total) {
  if (error !== undefined) {
    outcomes.fail(what, error);
    return;
  }
  outcomes.same(`${what}: root`, [cells.before[0], cells.after[0]], [total.before.bytes, total.after.bytes]);
  outcomes.same(`${what}: is the total certain`, cells.certain[0], total.kind !== "unchanged");
}
