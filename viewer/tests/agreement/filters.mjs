// Random filters: each condition as a chip of the page and, independently of that, as options of the command line.

const SOURCES = ["minor", "major", "external"];
const METRICS = ["allocated", "promoted", "peak", "live", "survived", "at"];
const SITES = ["own", "innermost"];
const ROWS = ["function", "location", "file", "module", "label", "domain", "source"];

/** A duration as a person writes it, in a unit that both sides take. */
function duration(micros, dice) {
  if (micros % 1_000_000 === 0 && micros > 0) return `${micros / 1_000_000}s`;
  return dice.below(2) === 0 ? `${micros}us` : `${(micros / 1000).toFixed(3)}ms`;
}

/** A module of OCaml's: what stands before the last dot. */
const moduleOf = (name) => name.slice(0, Math.max(0, name.lastIndexOf(".")));

/** The names of a trace, by what they name. */
export function namesOf({ functions, files, labels }) {
  const modules = [...new Set(functions.map(moduleOf).filter((name) => /^[A-Z][\w.]*$/.test(name)))];
  return { functions, files, labels, modules };
}

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

class Filters {
  constructor(dice, names, info) {
    Object.assign(this, { dice, names, info, chips: [], options: [], timeOptions: [], kinds: [] });
  }

  add(kind, chip, ...options) {
    this.kinds.push(kind);
    this.chips.push(chip);
    (chip.kind === "time" ? this.timeOptions : this.options).push(...options);
  }

  join(other) {
    for (const list of ["kinds", "chips", "options", "timeOptions"]) this[list].push(...other[list]);
  }

  literal(kind, name, option) {
    this.add(kind, { kind, literal: name }, option, `^${escaped(name)}$`);
  }

  span(kind, greatest, unit, first, last) {
    const from = this.dice.below(greatest / 2 + 1);
    const to = from + this.dice.below(greatest);
    const open = kind !== "time" && this.dice.below(3) === 0;
    const texts = [unit(from), unit(to)];
    this.add(kind, { kind, from: texts[0], to: open ? null : texts[1] }, first, texts[0], ...(open ? [] : [last, texts[1]]));
  }

  condition() {
    const { dice, names, info } = this;
    const micros = (value) => duration(Math.floor(value), dice);
    const kinds = [
      () => this.literal("function", dice.of(names.functions), "--filter"),
      () => this.literal("without", dice.of(names.functions), "--exclude"),
      () => names.files.length > 0 && this.literal("file", dice.of(names.files), "--filter"),
      () => names.modules.length > 0 && this.module(dice.of(names.modules), dice.below(3) === 0),
      () => names.labels.length > 0 && this.literal("label", dice.of(names.labels), "--label"),
      () => this.loose(dice.of(names.functions)),
      () => this.span("size", 40 * info.word_bytes, String, "--min-size", "--max-size"),
      () => this.span("lifetime", info.duration_us / 2, micros, "--min-lifetime", "--max-lifetime"),
      () => this.span("time", info.duration_us, micros, "--since", "--until"),
      () => info.domains.length > 1 && this.value("domain", "number", dice.of(info.domains)),
      () => this.value("source", "source", dice.of(SOURCES)),
    ];
    // What a trace does not have is not drawn.
    while (dice.of(kinds)() === false);
  }

  value(kind, field, value) {
    if (this.kinds.includes(kind)) return false;
    this.add(kind, { kind, [field]: value }, `--${kind}`, String(value));
    return true;
  }

  module(name, without) {
    const text = `^${escaped(name)}\\.`;
    this.add("module", { kind: without ? "without" : "function", text }, without ? "--exclude" : "--filter", text);
  }

  /** What a person types: a part of a name, or two of them. */
  loose(name) {
    const part = escaped(name.slice(0, 1 + this.dice.below(name.length)));
    const text = this.dice.below(2) === 0 ? part : `${part}|^${escaped(this.dice.of(this.names.functions))}`;
    this.add("function", { kind: "function", text }, "--filter", text);
  }
}

/** Of these a second one would replace the first. */
const ONCE = new Set(["size", "lifetime", "time"]);

/** One condition or two, what is measured, and what a row is. */
export function randomFilter(dice, names, info) {
  const filters = new Filters(dice, names, info);
  filters.condition();
  if (dice.below(2) === 0) {
    const second = new Filters(dice, names, info);
    second.condition();
    if (!ONCE.has(second.kinds[0]) || second.kinds[0] !== filters.kinds[0]) filters.join(second);
  }
  const { chips, options, timeOptions, kinds } = filters;
  const metric = dice.of(METRICS);
  const at = dice.below(info.duration_us + 1);
  return {
    chips, options, timeOptions, kinds: kinds.join("+"), metric, at, by: dice.of(ROWS), sites: dice.of(SITES),
    metricOptions: metric === "at" ? ["--at", `${at}us`] : ["--metric", metric],
  };
}
