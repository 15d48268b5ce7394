// The view: everything that a link to the page says. It lives in the fragment of the address,
//
//   #flame&metric=peak&function=login&focus=main/serve@server.c
//
// so that Back returns to the view before and a copied link opens the same one. What a fragment does
// not name has its default, and what it names wrongly is left out.

import type { By, Metric, Site, SiteFrame, SortedBy, TreeBy } from "../query/types";
import { decodeChip, encodeChip, type Chip } from "./chips";
import { decoded, decodeNames, encodeNames, one, whole } from "./fragment";
import { encodeHeap, HEAP_DEFAULTS, heapSetters, type HeapView } from "./heap-view";

export type Tab = "overview" | "flame" | "table" | "leaks" | "diff" | "source" | "snapshots" | "heat";
export const TABS: Tab[] = ["overview", "flame", "table", "leaks", "diff", "source", "snapshots", "heat"];
/** Those of the query, which are those of `heaptap report`; and what survived a major collection. */
export type PageMetric = Metric | "major";
export const METRICS: PageMetric[] = ["allocated", "promoted", "peak", "at", "live", "survived", "major"];
export const BYS: By[] = ["function", "location", "file", "module", "label", "domain", "source"];
export const TREE_BYS: TreeBy[] = ["function", "location", "file", "module"];
const SITE_FRAMES: SiteFrame[] = ["own", "innermost"];

/** The largest first; with a minus the smallest, and of names the first in the alphabet. */
export type Sort = SortedBy | `-${SortedBy}`;
const SORTED_BY: SortedBy[] = ["self", "total", "blocks", "name", "more"];
const SORTS: Sort[] = SORTED_BY.flatMap((by): Sort[] => [by, `-${by}`]);

export function sortOf(sort: Sort): { by: SortedBy; ascending: boolean } {
  const ascending = sort.startsWith("-");
  return { by: (ascending ? sort.slice(1) : sort) as SortedBy, ascending };
}

export interface View {
  tab: Tab;
  trace: number;
  /** The older trace of Diff; the newer one is `trace`, unless that is the same: see `compared`. */
  before: number;
  metric: PageMetric;
  /** Microseconds since the start, of the metric `at`. */
  at: number | null;
  /** What rows, cards and the time line name: own code, or library code if that allocates. */
  sites: SiteFrame;
  chips: readonly Chip[];
  /** The path from the root to the focused cell. */
  focus: readonly Site[];
  /** The path from the focused cell to the selected one. */
  selected: readonly Site[];
  invert: boolean;
  treeBy: TreeBy;
  /** The part of the flame's width that is shown, in parts of 10⁸; null is all of it. */
  across: readonly [number, number] | null;
  search: string;
  /** What a row of the table is, and the row that is open. */
  by: By;
  row: Site | null;
  /** By what rows are sorted, and the text that they contain. */
  sort: Sort;
  find: string;
  /** Hot fragments in place of the rows. */
  hot: boolean;
  /** The grouping of the time line, and the module and function it has been narrowed to. */
  over: By;
  drill: readonly Site[];
  /** How many larger rows come before those that have a layer. */
  layer: number;
  /** The part of the run that time lines show, in microseconds since the start; null is all of it. */
  zoom: readonly [number, number] | null;
  /** One small picture for each series, instead of a stack. */
  multiples: boolean;
  /** The names of the probes that have a lane below the time line; null until somebody chooses: the first two. */
  lanes: readonly string[] | null;
  /** The file and line of Source. */
  file: string;
  line: number;
  diffTable: boolean;
  heap: HeapView;
}

export const DEFAULTS: View = {
  tab: "overview",
  trace: 0,
  before: 0,
  metric: "peak",
  at: null,
  sites: "own",
  chips: [],
  focus: [],
  selected: [],
  invert: false,
  treeBy: "function",
  across: null,
  search: "",
  by: "function",
  row: null,
  sort: "self",
  find: "",
  hot: false,
  over: "module",
  drill: [],
  layer: 0,
  zoom: null,
  multiples: false,
  lanes: null,
  file: "",
  line: 0,
  diffTable: false,
  heap: HEAP_DEFAULTS,
};

/** `name`, `name@file`, `name@file:12:3-9`, each part encoded. */
function encodeSite({ name, file, line, chars }: Site): string {
  let text = encodeURIComponent(name);
  if (file) text += `@${encodeURIComponent(file)}`;
  if (line) text += `:${line}:${chars?.[0] ?? 0}-${chars?.[1] ?? 0}`;
  return text;
}

function decodeSite(text: string): Site | null {
  const match = /^([^@:]*)(?:@([^@:]*))?(?::(\d+):(\d+)-(\d+))?$/.exec(text);
  if (!match) return null;
  const [, name = "", file, line, first, last] = match;
  const site: Site = { name: decoded(name) };
  if (file) site.file = decoded(file);
  if (line) {
    site.line = Number(line);
    site.chars = [Number(first), Number(last)];
  }
  return site.name === "" && !site.file ? null : site;
}

const encodePath = (path: readonly Site[]) => path.map(encodeSite).join("/");

function decodePath(text: string): Site[] {
  const path: Site[] = [];
  for (const part of text.split("/")) {
    const site = decodeSite(part);
    if (!site) break;
    path.push(site);
  }
  return path;
}

/** `from-to`, which is some time. */
function decodeSpan(text: string): [number, number] | null {
  const [from, to] = text.split("-").map((part) => whole<number | null>(part, null));
  return from != null && to != null && from < to ? [from, to] : null;
}

export function encodeView(view: View): string {
  const parts: string[] = [view.tab];
  const put = (key: string, value: string | number, standard: string | number) => {
    if (value !== standard) parts.push(`${key}=${value}`);
  };
  put("trace", view.trace, DEFAULTS.trace);
  put("before", view.before, DEFAULTS.before);
  put("metric", view.metric, DEFAULTS.metric);
  if (view.at !== null) put("at", view.at, "");
  put("sites", view.sites, DEFAULTS.sites);
  parts.push(...view.chips.map(encodeChip));
  put("focus", encodePath(view.focus), "");
  put("selected", encodePath(view.selected), "");
  put("invert", view.invert ? 1 : 0, 0);
  put("frames", view.treeBy, DEFAULTS.treeBy);
  if (view.across) parts.push(`across=${view.across.join("-")}`);
  put("search", encodeURIComponent(view.search), "");
  put("by", view.by, DEFAULTS.by);
  put("row", view.row ? encodeSite(view.row) : "", "");
  put("order", view.sort, DEFAULTS.sort);
  put("find", encodeURIComponent(view.find), "");
  put("hot", view.hot ? 1 : 0, 0);
  put("over", view.over, DEFAULTS.over);
  put("drill", encodePath(view.drill), "");
  put("layer", view.layer, DEFAULTS.layer);
  if (view.zoom) parts.push(`zoom=${view.zoom.join("-")}`);
  put("multiples", view.multiples ? 1 : 0, 0);
  // None at all is a choice too.
  if (view.lanes) parts.push(`lanes=${encodeNames(view.lanes)}`);
  put("open", encodeURIComponent(view.file), "");
  put("line", view.line, 0);
  put("rows", view.diffTable ? 1 : 0, 0);
  parts.push(...encodeHeap(view.heap));
  return `#${parts.join("&")}`;
}

export function decodeView(fragment: string): View {
  const [tab = "", ...parts] = fragment.replace(/^#/, "").split("&");
  const view: View = { ...DEFAULTS, tab: one(tab, TABS, DEFAULTS.tab), heap: { ...HEAP_DEFAULTS } };
  const heap = heapSetters(view.heap);
  const chips: Chip[] = [];
  for (const part of parts) {
    const equals = part.indexOf("=");
    if (equals < 0) continue;
    const [key, value] = [part.slice(0, equals), part.slice(equals + 1)];
    const setters: Record<string, () => void> = {
      trace: () => (view.trace = whole(value, 0)),
      before: () => (view.before = whole(value, DEFAULTS.before)),
      metric: () => (view.metric = one(value, METRICS, DEFAULTS.metric)),
      at: () => (view.at = whole(value, 0)),
      sites: () => (view.sites = one(value, SITE_FRAMES, DEFAULTS.sites)),
      focus: () => (view.focus = decodePath(value)),
      selected: () => (view.selected = decodePath(value)),
      invert: () => (view.invert = value === "1"),
      frames: () => (view.treeBy = one(value, TREE_BYS, DEFAULTS.treeBy)),
      across: () => (view.across = decodeSpan(value)),
      search: () => (view.search = decoded(value)),
      by: () => (view.by = one(value, BYS, DEFAULTS.by)),
      row: () => (view.row = decodeSite(value)),
      order: () => (view.sort = one(value, SORTS, DEFAULTS.sort)),
      find: () => (view.find = decoded(value)),
      hot: () => (view.hot = value === "1"),
      over: () => (view.over = one(value, BYS, DEFAULTS.over)),
      drill: () => (view.drill = decodePath(value)),
      layer: () => (view.layer = whole(value, 0)),
      zoom: () => (view.zoom = decodeSpan(value)),
      multiples: () => (view.multiples = value === "1"),
      lanes: () => (view.lanes = [...new Set(decodeNames(value))]),
      open: () => (view.file = decoded(value)),
      line: () => (view.line = whole(value, 0)),
      rows: () => (view.diffTable = value === "1"),
    };
    const set = Object.hasOwn(setters, key) ? setters[key] : undefined;
    if (set) set();
    else if (Object.hasOwn(heap, key)) heap[key]!(value);
    else {
      const chip = decodeChip(key, decoded(value));
      if (chip) chips.push(chip);
    }
  }
  view.chips = chips;
  return view;
}
