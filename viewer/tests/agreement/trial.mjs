// Random filters on one trace: the page that is exported, the page that is served, the server's full readings, and the
// command line, each asked for the same figures.

import { availableParallelism } from "node:os";
import { exportedWith, json, printed, serve } from "../browser.mjs";
import { Dice } from "./dice.mjs";
import { ASPECTS } from "./aspects.mjs";
import { namesOf, randomFilter } from "./filters.mjs";
import { Outcomes } from "./outcomes.mjs";
import { withClient } from "./pages.mjs";

/** Filters in one call to the page. */
const BATCH = 20;
/** Of filters whose figures in the page are exact, one in so many is asked of the server too. */
const SERVED = 7;

/** Asks several things about each of several trials. */
async function inBatches(client, trials, questions, keep) {
  for (let from = 0; from < trials.length; from += BATCH) {
    const batch = trials.slice(from, from + BATCH);
    const answers = await client.answers(batch.flatMap(questions));
    for (const trial of batch) keep(trial, answers.splice(0, questions(trial).length));
  }
}

export class Trial {
  constructor(name, path, { filters, seed, blocks }) {
    Object.assign(this, { name, path, filters, seed });
    this.options = blocks === undefined ? [] : ["--blocks", String(blocks)];
    this.outcomes = new Outcomes(name);
  }

  async run() {
    const page = await exportedWith(this.options, this.path);
    await withClient(page, "none", async (client) => {
      this.info = client.traces[0].info;
      if (!this.info) throw new Error(`${this.name} does not open: ${JSON.stringify(client.traces)}`);
      await this.prepare(client);
      await this.ask(client);
    });
    await serve([...this.options, this.path], (address) => withClient(address, "own", (client) => this.askServer(client)));
    await this.compare();
    return this.outcomes;
  }

  /** Draws the filters, and has the page write them as links. */
  async prepare(client) {
    const [all] = await client.answers([{ link: "#table", kind: "names", more: { text: "", most: 1000 } }]);
    const names = namesOf(all);
    const dice = new Dice(this.seed);
    this.trials = Array.from({ length: this.filters }, () => randomFilter(dice, names, this.info));
    const unfiltered = ASPECTS.map(() => ({ chips: [], options: [], timeOptions: [], kinds: "all", metric: "peak", at: 0, by: "function", sites: "own", metricOptions: ["--metric", "peak"] }));
    this.trials.push(...unfiltered);
    for (const [at, trial] of this.trials.entries()) {
      const chips = await client.chips(trial.chips);
      const fragments = [`metric=${trial.metric}`, trial.metric === "at" ? `at=${trial.at}` : "", `sites=${trial.sites}`, ...chips];
      trial.link = `#table&${fragments.filter(Boolean).join("&")}`;
      trial.aspect = ASPECTS[at % ASPECTS.length];
      trial.seed = this.seed * 1_000_003 + at;
    }
  }

  /** What each filter asks: a table, and one aspect more. */
  questions(trial) {
    const table = { link: trial.link, kind: "report", more: { by: trial.by, top: 0 } };
    return [table, ...trial.aspect.questions(trial, this.info)];
  }

  /** Asks the page, and what follows from its answers. */
  async ask(client) {
    await inBatches(client, this.trials, (trial) => this.questions(trial), (trial, answers) => { trial.answers = answers; });
    for (const trial of this.trials) trial.further = trial.aspect.then?.(trial, trial.answers.slice(1)) ?? [];
    await inBatches(client, this.trials, (trial) => trial.further, (trial, answers) => trial.answers.push(...answers));
  }

  /** The server's page has the same answers; its full readings are compared with the command line. */
  async askServer(client) {
    const all = (trial) => [...this.questions(trial), ...trial.further];
    const some = this.trials.filter((_, at) => at % SERVED === 0);
    await inBatches(client, some, all, (trial, answers) => this.outcomes.same(`serve: ${describe(trial)}`, answers, trial.answers));
    for (const [at, trial] of this.trials.entries()) {
      const isExact = trial.answers.every((answer) => answer.error === undefined && answer.exact !== false);
      if (isExact && at % SERVED !== 0) continue;
      trial.full = await client.answers(all(trial).map((question) => ({ ...question, exact: true })));
    }
  }

  async compare() {
    const left = [...this.trials];
    const work = async () => {
      for (let trial = left.pop(); trial; trial = left.pop()) await this.compareOne(trial);
    };
    await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, work));
  }

  /** What the command line says with the filter; `also` are further options. */
  report(trial, ...also) {
    return json("report", "--json", "--top", "0", "--sites", trial.sites, ...trial.options, ...trial.timeOptions, ...also, this.path);
  }

  /** What another verb says of the trace. */
  command(verb, ...options) {
    return json(verb, ...options, this.path);
  }

  text(verb, ...options) {
    return printed(verb, ...options, this.path);
  }

  async compareOne(trial) {
    const expected = await this.report(trial, ...trial.metricOptions, "--by", trial.by);
    if (expected.totals.samples === 0) this.outcomes.note("nothing", trial.kinds);
    for (const [where, answers] of [["page", trial.answers], ["full reading", trial.full]]) {
      if (!answers) continue;
      const what = `${where}: ${describe(trial)}`;
      const [table, ...more] = answers;
      if (this.isRefused(what, table, where)) continue;
      if (where === "full reading" && table.exact !== true) this.outcomes.fail(what, "a full reading is not exact");
      this.outcomes.note(table.exact ? "exact" : "inexact", trial.kinds);
      compareTables(this.outcomes, what, table, expected);
      if (more.some((answer) => this.isRefused(`${what} ${trial.aspect.name}`, answer, where))) continue;
      await trial.aspect.compare({ trial, what: `${what} ${trial.aspect.name}`, answers: more, table: expected, run: this, outcomes: this.outcomes, info: this.info });
    }
  }

  /** Only an archive that lacks callers may refuse, and never a full reading. */
  isRefused(what, answer, where) {
    if (answer.error === undefined) return false;
    if (where === "page" && this.info.table_lacks_callers && /callers/.test(answer.error)) this.outcomes.note("refused", "refused");
    else this.outcomes.fail(what, answer.error);
    return true;
  }
}

export function describe({ kinds, link, by }) {
  return `${kinds} ${link} by=${by}`;
}

/** A table of functions needs no callers, so that `report` lacks none where the page, which has them all, may. */
function withoutCallers({ trace: _, limits: { samples_missing_from_callers: __, ...limits }, ...rest }) {
  return { ...rest, limits };
}

const siteKey = ({ name, file = "", line = 0, chars = [0, 0] }) => JSON.stringify([name, file, line, chars]);

/** All figures of `report --json`. */
export function compareTables(outcomes, what, { exact, ...page }, report) {
  const [found, expected] = [withoutCallers(page), withoutCallers(report)];
  if (exact) {
    outcomes.same(what, found, expected);
    return;
  }
  outcomes.near(`${what}: total`, found.table.total, expected.table.total.bytes, true);
  for (const name of ["allocated", "external", "live_at_peak", "peak_external", "live", "live_external", "live_young"]) {
    outcomes.near(`${what}: ${name}`, found.totals[name], expected.totals[name].bytes);
  }
  const rows = new Map(expected.table.rows.map((row) => [siteKey(row), row.bytes]));
  for (const row of found.table.rows) outcomes.near(`${what}: row ${siteKey(row)}`, row, rows.get(siteKey(row)) ?? 0);
}
