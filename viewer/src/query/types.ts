// What the query (crates/query) is asked and what it answers, as JSON. The field names are those of
// `heaptap report --json`, `leaks --json` and `diff --json`, which the answers contain unchanged. The types of answers
// are generated from Rust's (figures.ts), those of requests are written here.

import type {
  Diff, HeatMap, Hot, Info, Leaks, MergedTree, Names, ReportFigures, RowTable, Site, SiteDetails as SiteAnswer, SiteFrame, SourceLines,
  Timeline as TimelineAnswer, TreeAnswer,
} from "./figures";

export type {
  BlockCount, CallerSite, Cells, Change, Diff, HeatCells, HeatMap, HeatRow, HotFragment, HotFrame, Info, Leak, Leaks, Lifetime, MergedTree, Names, Part, ReportRow, RowTable, Series,
  Site, SiteFrame, SiteNode, Size, SourceLine, SourceLines, Sum, TableRow, Totals,
} from "./figures";

export type Metric = "allocated" | "promoted" | "peak" | "at" | "live" | "survived";
export type By = "function" | "location" | "file" | "module" | "label" | "domain" | "kind" | "source";
export type TreeBy = "function" | "location" | "file" | "module";
export type Source = "minor" | "major" | "external";

/** Which blocks count. Times are microseconds since the start, both ends included. */
export interface Filter {
  include?: string[];
  exclude?: string[];
  labels?: string[];
  time?: [number, number];
  size?: [number, number | null];
  lifetime?: [number, number | null];
  domains?: number[];
  sources?: Source[];
}

export interface Common {
  trace: number;
  filter: Filter;
  metric: Metric;
  at?: number;
  sites: SiteFrame;
  /** Of `survived`: only what was old by then, in microseconds since the start: the page's metric `major`. */
  old_before?: number;
}

/** An answer; `exact` says whether it is what a reading of the trace would give. */
type Stated<T> = T & { exact?: boolean };

export type Report = Stated<ReportFigures>;
export type Timeline = Stated<TimelineAnswer>;
export type SiteDetails = Stated<SiteAnswer>;

/** Only of a comparison: bytes of each cell in both traces, and whether they differ by more than chance. */
export type Tree = Stated<TreeAnswer> & { before?: number[]; after?: number[]; certain?: boolean[] };

type Compared = { before: number; after: number; filter: Filter; metric: Metric; sites: SiteFrame; at?: number };
type TreeShape = { by: TreeBy; invert: boolean; focus: Site[]; fold: boolean; min_share: number; most: number };

/** By what the rows of the table are sorted: what they allocate themselves, with all that they call, … */
export type SortedBy = "self" | "total" | "blocks" | "name" | "more";

/** Each kind of request with its answer. */
export interface Queries {
  info: { ask: { trace: number }; answer: Info };
  report: { ask: Common & { by: By; top: number; callers?: number }; answer: Report };
  table: { ask: Common & { by: By; top: number; sort: SortedBy; ascending: boolean; text: string }; answer: Stated<RowTable> };
  timeline: { ask: Common & { by: By; top: number; skip: number; points: number; range?: readonly [number, number]; within?: Site & { by: By } }; answer: Timeline };
  heat_map: { ask: Common & { by: By; top: number; points: number; range?: readonly [number, number] }; answer: Stated<HeatMap> };
  tree: { ask: Common & TreeShape; answer: Tree };
  site: { ask: Common & { by: By; site: Site; levels: number }; answer: SiteDetails };
  leaks: { ask: { trace: number; filter: Filter; sites: SiteFrame }; answer: Leaks };
  hot: { ask: Common & { by: TreeBy }; answer: Stated<Hot> };
  diff: { ask: Compared & { by: By; top: number }; answer: Diff };
  diff_tree: { ask: Compared & TreeShape; answer: MergedTree };
  source: { ask: Common & { file: string }; answer: Stated<SourceLines> };
  names: { ask: { trace: number; text: string; most: number }; answer: Names };
}

export type Kind = keyof Queries;
export type Ask<K extends Kind> = Queries[K]["ask"];
export type Answer<K extends Kind> = Queries[K]["answer"];
