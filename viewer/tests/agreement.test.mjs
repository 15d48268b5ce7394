// The rule of agreement, end to end: no figure of the page or of `heaptap serve` differs from what `heaptap report`
// says with the same filter by more than the error that it states. Random filters go to the page as links, through the
// page's own functions, client and query, and to the command line as options.
//
//   HEAPTAP_AGREEMENT_TRACES   more traces, `:` between them, with fewer filters each
//   HEAPTAP_AGREEMENT_FILTERS  how many filters each of those gets, 40 by default
//   HEAPTAP_AGREEMENT_SEED     another choice of filters

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { Trial } from "./agreement/trial.mjs";
import { compareDiffs } from "./agreement/diffs.mjs";
import { compareHolders } from "./agreement/holders.mjs";
import { closeBrowser, rarePaths, root, trace, traceOf } from "./browser.mjs";

after(closeBrowser);

const FILTERS = 200;
const seed = Number(process.env.HEAPTAP_AGREEMENT_SEED ?? 1);

async function agree(name, path, options = {}) {
  const trial = new Trial(name, path, { filters: FILTERS, seed, ...options });
  const outcomes = await trial.run();
  console.log(`${name}: ${JSON.stringify({ ...outcomes.counts, ...outcomes.of })}`);
  outcomes.check();
  return outcomes;
}

test("a service with labels, domains, every source and a leak", async () => {
  const { counts } = await agree("service", await trace("service.ctf"));
  assert.ok(counts.exact > 3 * counts.nothing, "most filters select something");
  assert.equal(counts.inexact + counts.refused, 0, "every block is in the page");
});

test("a thinned table: exact without a filter, within the error with one, and exact on demand", async () => {
  const { counts } = await agree("thinned", await trace("service.ctf"), { blocks: 2000 });
  assert.ok(counts.inexact > FILTERS / 2, "most figures come from the table");
});

test("a trace of the original writer, with threads", async () => agree("threads", await trace("crates/trace/tests/data/made-threads.v2.ctf")));

test("a trace of the original writer, with deep calls", async () => agree("trees", await trace("crates/trace/tests/data/made-trees.v3.ctf")));

test("a damaged trace", async () => {
  const bytes = Buffer.from(readFileSync(await trace("service.ctf")));
  bytes.fill(0xff, 150_000, 150_400);
  await agree("damaged", traceOf("agreement-damaged.ctf", bytes));
});

test("300,000 rare call paths", async () => agree("rare paths", await rarePaths(), { filters: 20 }));

test("a compiler", async (context) => {
  const path = join(root, "../shared/data/ocamlopt.v1.ctf");
  if (!existsSync(path)) {
    console.error(`\n*** SKIPPED: ${path} is not there ***\n`);
    context.skip("no trace of a compiler here");
    return;
  }
  await agree("compiler", path);
});

for (const path of (process.env.HEAPTAP_AGREEMENT_TRACES ?? "").split(":").filter(Boolean)) {
  test(`${path}, as asked`, async () => agree(basename(path), path, { filters: Number(process.env.HEAPTAP_AGREEMENT_FILTERS ?? 40) }));
}

test("two traces compared", async () => compareDiffs(await trace("before.ctf"), await trace("service.ctf"), { filters: 60, seed }));

test("what holds what, in snapshots of a trace", async () => compareHolders(await trace("service.ctf"), ["service-1.heap", "service-2.heap", "service-3.heap"]));
