// What the query (crates/page) is asked and what it answers, as JSON. The field names are those of
// `heaptap report --json`, `leaks --json` and `diff --json`, which the answers contain unchanged.

export type Metric = "allocated" | "promoted" | "peak" | "at" | "live" | "survived";
export type By = "function" | "location" | "file" | "module" | "label" | "domain" | "source";
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
  /** Of `survived`: only what was old by then, in microseconds since the start. */
  old_before?: number;
}

/** An estimate: standard error, and the ends of the 95 % interval. */
export interface Size {
  bytes: number;
  /** Null where nothing was sampled, and where it is only known to be between `low` and `high`. */
  error: number | null;
  low: number;
  high: number;
}

export interface Sum extends Size {
  samples: number;
}

/** What identifies a row. Rows of files have an empty name. */
export interface Site {
  name: string;
  file?: string;
  line?: number;
  chars?: [number, number];
}

export interface Part {
  share: number;
  /** Null where it is not known. */
  error: number | null;
}

export interface Lifetime {
  us: number;
  error: number;
}

export interface Totals {
  samples: number;
  allocated: Size;
  external: Size;
  peak: Size;
  peak_us: number;
  live: Size;
  live_young: Size;
  promotion: Part;
  median_lifetime: Lifetime | null;
  ninth_decile_lifetime: Lifetime | null;
  survivors: Part;
}

export interface Info {
  name: string;
  executable: string;
  command?: string;
  host?: string;
  pid?: number;
  start_us?: number;
  sample_rate: number;
  word_bytes: number;
  duration_us: number;
  events: number;
  cut_short: string | null;
  /** Rows of the table of blocks, which holds one in `blocks_one_in` of those in the trace. */
  blocks: number;
  blocks_one_in: number;
  totals: Totals;
  limits: { objects_followed_one_in: number; samples_missing_from_callers: number };
  labels: string[];
  domains: number[];
  sources: string[];
  files: string[];
  notes: string[];
}

export interface ReportRow extends Site, Sum {
  share: number;
  callers?: ReportRow[];
}

export interface Report {
  exact?: boolean;
  selected: boolean;
  totals: Totals;
  table: {
    metric: string;
    by: By;
    rows: ReportRow[];
    others: Sum & { rows: number; share: number };
    total: Sum;
  };
}

export interface Series {
  site: Site;
  live: number[];
  allocated: number[];
  sum?: Sum;
}

export interface Timeline {
  exact?: boolean;
  width_us: number;
  /** The end of each bucket, in microseconds. */
  times: number[];
  series: Series[];
  others: { rows: number; live: number[]; allocated: number[]; sum?: Sum };
  total: { live: number[]; most_live: number[]; low: number[]; high: number[]; allocated: number[] };
  peak_us: number;
  peak: Size;
}

/** Cells in preorder; cell 0 is the focused one. */
export interface Cells {
  parent: number[];
  /** Index into `sites`; -1 is a cell that joins small ones. */
  site: number[];
  samples: number[];
  self: number[];
  /** How many cells a joined cell stands for. */
  count: number[];
  repeats: number[];
}

export interface Tree {
  exact?: boolean;
  total: Sum;
  focus_total: Sum;
  sites: Site[];
  cells: Cells;
  depth: number;
  /** The standard error in bytes of `s` samples is the root of `a s + b s²`; null if they are an upper bound. */
  error_of: { a: number | null; b: number };
  /** Bytes that a sample stands for. */
  scale: number;
  /** Frames that were folded away. */
  omitted: number;
  /** Only of a comparison: bytes of each cell in both traces, and whether they differ by more than chance. */
  before?: number[];
  after?: number[];
  certain?: boolean[];
}

/** The call trees of two traces as one, sizes in bytes. */
export interface MergedTree {
  sites: Site[];
  cells: { parent: number[]; site: number[]; before: number[]; after: number[]; certain: boolean[]; count: number[] };
  depth: number;
}

export interface SiteNode {
  site: Site;
  sum: Sum;
  share: number;
  children: SiteNode[];
}

export interface SiteDetails {
  exact?: boolean;
  /** What the site allocates itself. */
  sum: Sum;
  /** What is allocated with the site anywhere on the stack. */
  total: Sum;
  share: number;
  callers: SiteNode[];
  callees: SiteNode[];
  lifetimes: { classes: { from_us: number; to_us: number | null; bytes: number }[]; median_us: number | null };
  sizes: { from: number; to: number | null; bytes: number }[];
  lines: { line: number; sum: Sum }[];
}

export interface Leak {
  site: Site;
  live: Size;
  allocated: Size;
  growth_per_second: Size;
  slowing: boolean;
  survivors_from_us: number;
  survivors_to_us: number;
  survivors: number[];
  called_from: Site[];
  growth?: { times: number[]; live: number[]; low: number[]; high: number[] };
}

export interface Leaks {
  duration_us: number;
  verdict: string;
  conclusive: boolean;
  leaks: Leak[];
}

export interface Change extends Site {
  before: Size;
  after: Size;
  difference_bytes: number;
  distance: number;
  kind: "unchanged" | "new" | "gone" | "grew" | "shrank";
}

export interface Diff {
  before: string;
  after: string;
  metric: string;
  by: By;
  total: Change;
  changes: Change[];
  not_shown: number;
  within_chance: number;
}

export interface HotFrame extends Site {
  /** The most iterations of the recursion that begins here and is folded. */
  repeats?: number;
}

export interface HotFragment extends Size {
  share: number;
  own_share: number;
  /** The innermost first. */
  frames: HotFrame[];
}

export interface Hot {
  exact?: boolean;
  metric: string;
  threshold: number;
  total: Size;
  fragments: HotFragment[];
  limits: { complete: boolean; samples_missing: number };
}

export interface SourceLines {
  exact?: boolean;
  file: string;
  lines: { line: number; sum: Sum; functions: string[] }[];
  total: Sum;
}

export interface Names {
  functions: string[];
  files: string[];
  labels: string[];
}

type Compared = { before: number; after: number; filter: Filter; metric: Metric; at?: number };
type TreeShape = { by: TreeBy; invert: boolean; focus: Site[]; fold: boolean; min_share: number; most: number };

/** Each kind of request with its answer. */
export interface Queries {
  info: { ask: { trace: number }; answer: Info };
  report: { ask: Common & { by: By; top: number; callers?: number }; answer: Report };
  timeline: { ask: Common & { by: By; top: number; points: number; within?: Site & { by: By } }; answer: Timeline };
  tree: { ask: Common & TreeShape; answer: Tree };
  site: { ask: Common & { by: By; site: Site; levels: number }; answer: SiteDetails };
  leaks: { ask: { trace: number; filter: Filter }; answer: Leaks };
  hot: { ask: Common & { by: TreeBy }; answer: Hot };
  diff: { ask: Compared & { by: By; top: number }; answer: Diff };
  diff_tree: { ask: Compared & TreeShape; answer: MergedTree };
  source: { ask: Common & { file: string }; answer: SourceLines };
  names: { ask: { trace: number; text: string; most: number }; answer: Names };
}

export type Kind = keyof Queries;
export type Ask<K extends Kind> = Queries[K]["ask"];
export type Answer<K extends Kind> = Queries[K]["answer"];
