// Heap snapshots of a trace: where the page says that what is alive was allocated, and who holds it, against
// `heaptap report --heap` with each of these places as a filter.

import { exported, json, trace as traceNamed } from "../browser.mjs";
import { Outcomes } from "./outcomes.mjs";
import { withClient } from "./pages.mjs";

const GARBAGE = "(garbage)";
const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

export async function compareHolders(path, names) {
  const outcomes = new Outcomes("snapshots");
  await withClient(await exported(path, ...names), "none", async (client) => {
    const { document } = await client.snapshots();
    for (const snapshot of document.snapshots) {
      const heap = await traceNamed(snapshot.name);
      const report = (...filters) => json("report", "--json", "--top", "0", "--by", "location", "--sites", "innermost", "--heap", heap, ...filters, path);
      const all = await report();
      outcomes.note("exact", snapshot.name);
      compareAll(outcomes, snapshot, all.snapshot);
      for (const row of snapshot.sites.rows) {
        const { name, file, line } = row.site;
        const filtered = await report("--filter", `^${escaped(name)}$`);
        for (const [which, { table }] of [["all", all], ["filtered", filtered]]) {
          const found = table.rows.find((each) => each.name === name && each.file === file && each.line === line);
          outcomes.note("exact", which);
          compareRow(outcomes, `${snapshot.name}: ${name}:${line}, ${which}`, row, found);
        }
      }
    }
  });
  console.log(`snapshots: ${JSON.stringify({ ...outcomes.counts, ...outcomes.of })}`);
  outcomes.check();
}

/** What is held, without garbage, which the page leaves out. */
function held({ in_snapshot, held_by }) {
  const garbage = held_by.find(({ holder }) => holder === GARBAGE)?.samples ?? 0;
  return { samples: in_snapshot.samples - garbage, parts: held_by.filter(({ holder }) => holder !== GARBAGE) };
}

function compareAll(outcomes, { name, sites, at_us }, joined) {
  const samples = sites.rows.reduce((sum, row) => sum + row.samples, 0);
  outcomes.same(`${name}: all`, [at_us, samples], [joined.taken_us, held(joined).samples]);
}

function compareRow(outcomes, what, row, found) {
  if (!found) {
    outcomes.fail(what, "report has no such row");
    return;
  }
  const { samples, parts } = held(found);
  outcomes.same(`${what}: samples`, row.samples, samples);
  // Of two that hold as much either may be named.
  const holder = parts.find((part) => part.holder === row.holder);
  const most = Math.max(...parts.map((part) => part.samples));
  outcomes.same(`${what}: ${row.holder}`, [row.holder_share, most], [holder?.samples / samples, holder?.samples]);
  if (samples === found.in_snapshot.samples) {
    const { bytes, error, low, high } = found.in_snapshot;
    outcomes.same(`${what}: size`, row.size, { bytes, error, low, high });
  }
}
