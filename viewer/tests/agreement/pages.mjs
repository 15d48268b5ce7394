// Opens a page, of `heaptap export` or of `heaptap serve`, with the page's functions and client beside its own script.

import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withPage } from "../browser.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const COMMON = { bundle: true, write: false, format: "iife", target: "chrome111", logLevel: "warning" };

let bundled;
/** The page's modules as a script, as viewer/build.mjs makes its own. */
async function script() {
  bundled ??= (async () => {
    const text = async (options) => (await build({ ...COMMON, ...options })).outputFiles[0].text;
    const worker = await text({ entryPoints: [join(here, "../../src/query/worker.ts")] });
    return text({ entryPoints: [join(here, "page-client.js")], define: { WORKER_CODE: JSON.stringify(worker) }, jsx: "automatic", jsxImportSource: "preact" });
  })();
  return bundled;
}

/** Passes functions that ask the page at this address. */
export async function withClient(address, requests, body) {
  await withPage(address, { requests, bypassCSP: true }, async (page) => {
    await page.addScriptTag({ content: await script() });
    const traces = await page.evaluate(() => window.agreement.open());
    await body({
      traces,
      answers: (questions) => page.evaluate((each) => window.agreement.answers(each), questions),
      chips: (chips) => page.evaluate((each) => each.map(window.agreement.chip), chips),
      snapshots: () => page.evaluate(() => window.agreement.snapshots()),
    });
  });
}
