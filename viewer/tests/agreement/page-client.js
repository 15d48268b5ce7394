// Runs inside a page beside the page's own script: the page's functions and its client, with the query and the traces
// that the page has. `answers` turns a link into what the page would ask, and asks it; nothing is drawn.

import { parseBytes, parseDuration } from "../../src/text/units";
import { literally } from "../../src/text/sites";
import { encodeChip } from "../../src/view/chips";
import { load } from "../../src/view/load";
import { followed } from "../../src/view/live";
import { common, compared, ofWholeRun } from "../../src/view/request";
import { client, config, traces, view } from "../../src/view/store";
import { decodeView } from "../../src/view/view";
import { loadSnapshots, state as snapshots } from "../../src/snapshots/document";

let asked = 0;

/** The request of a view as the screens make it: each adds what only it needs. */
const REQUESTS = { leaks: ofWholeRun, diff: compared, diff_tree: compared };

function answer({ link, kind, more, exact }) {
  view.value = decodeView(link);
  const request = { ...(REQUESTS[kind] ?? common)(view.value), ...more };
  return new Promise((done) => client.ask(`agreement-${++asked}`, kind, request, done, exact === true));
}

async function until(holds) {
  while (!holds()) await new Promise((resume) => setTimeout(resume, 50));
}

window.agreement = {
  /** Resolves to what is known of each trace. */
  async open() {
    load();
    // What the server has read only a part of is not yet the trace.
    const isWhole = () => traces.value.every((state) => !("status" in state)) && followed.value.every((live) => live === null);
    await until(() => isWhole() && !client.busy.value);
    return traces.value;
  },
  answers: (questions) => Promise.all(questions.map(answer)),
  async snapshots() {
    if (config.snapshots === 0) return null;
    await loadSnapshots();
    return snapshots.value;
  },
  /** A chip as it stands in a link, of what a person enters or of a name that is clicked. */
  chip({ kind, literal, text, from, to, ...value }) {
    const parse = kind === "size" ? parseBytes : parseDuration;
    if (literal !== undefined) return encodeChip({ kind, text: literally(literal) });
    if (text !== undefined) return encodeChip({ kind, text });
    if (from === undefined) return encodeChip({ kind, ...value });
    return encodeChip({ kind, from: parse(from), to: to === null ? null : parse(to) });
  },
};
