// What the page is told, as JSON. Written by the test `types_tests` of crates/query from the
// structs in crates/report/src/figures and crates/query/src: do not edit.

import type { By } from "./types";

/**
 * An estimated number of blocks.
 */
export type BlockCount = { count: number, error: number, 
/**
 * The blocks of the table that it was estimated from.
 */
sampled: number, };

/**
 * A caller of a leak.
 */
export type CallerSite = { 
/**
 * It is library code, the function that own code calls, and stands for all that is called inside.
 */
library?: boolean, 
/**
 * Function or module; empty for a file.
 */
name: string, 
/**
 * File; empty for a module.
 */
file?: string, 
/**
 * The line; 0 except for a location.
 */
line?: number, 
/**
 * First and last character; zeros except for a location.
 */
chars?: [number, number], };

/**
 * Cells in preorder: column by column.
 */
export type Cells = { parent: Array<number>, 
/**
 * The number of the site; −1 for small cells that are joined.
 */
site: Array<number>, samples: Array<number>, self: Array<number>, 
/**
 * If the trace has several rates, and no error follows from a number of samples: the standard error of
 * each cell in bytes, and of what is at it itself.
 */
errors?: Array<number>, self_errors?: Array<number>, 
/**
 * How many cells are joined; 1 for others.
 */
count: Array<number>, repeats: Array<number>, };

/**
 * How sure a finding is.
 */
export type Certainty = "sure" | "likely" | "possible";

export type Change = { before: Size, after: Size, difference_bytes: number, 
/**
 * In standard errors.
 */
distance: number, kind: "unchanged" | "new" | "gone" | "grew" | "shrank", 
/**
 * Function or module; empty for a file.
 */
name: string, 
/**
 * File; empty for a module.
 */
file?: string, 
/**
 * The line; 0 except for a location.
 */
line?: number, 
/**
 * First and last character; zeros except for a location.
 */
chars?: [number, number], };

/**
 * How the collector's time divides, as shares of the time that was watched.
 */
export type CollectorShare = { minor: number, major: number, finalisers: number, longest_us: number, 
/**
 * Of the words of the minor heap, those that were promoted.
 */
promoted: number | null, watched_us: number, };

/**
 * Everything that is concluded from the evidence.
 */
export type Diagnosis = { verdict: DiagnosisVerdict, 
/**
 * Problems first, the surest and the largest first.
 */
findings: Array<DiagnosisFinding>, examined: Examined, 
/**
 * What is missing or damaged, in sentences.
 */
remarks: Array<string>, };

/**
 * One finding. The field names are those of the JSON.
 */
export type DiagnosisFinding = { kind: FindingKind, certainty: Certainty, 
/**
 * False for what is only worth knowing.
 */
is_problem: boolean, 
/**
 * One plain sentence.
 */
sentence: string, 
/**
 * How large it is now, in bytes.
 */
bytes: number | null, bytes_per_second: number | null, 
/**
 * The standard error of that, if it is an estimate with one.
 */
growth_error: number | null, 
/**
 * Since when, in microseconds since the Unix epoch, as far as it was seen.
 */
since_us: number | null, 
/**
 * How long the memory lasts at this pace.
 */
full_in_us: number | null, 
/**
 * Who holds it, and how that grew.
 */
holder: HolderGrowth | null, 
/**
 * Where it is allocated, most growth first.
 */
sites: Array<GainedSite>, 
/**
 * What would help.
 */
advice: string | null, };

/**
 * The overall verdict.
 */
export type DiagnosisVerdict = { outcome: Outcome, sentence: string, 
/**
 * If it cannot be told: the one command that would decide it.
 */
command: string | null, };

/**
 * What is shown. The field names are those of the JSON.
 */
export type Diff = { before: string, after: string, metric: string, by: By, 
/**
 * Which frame of a stack a row is about.
 */
sites: SiteFrame, total: Change, 
/**
 * Differences that are more than chance.
 */
changes: Array<Change>, 
/**
 * How many more there are.
 */
not_shown: number, 
/**
 * Sites whose difference may be chance.
 */
within_chance: number, };

/**
 * Cells in preorder; the first is the program. The fields are columns.
 */
export type DominatorTree = { names: Array<string>, 
/**
 * The cell above; -1 for the program.
 */
parent: Array<number>, 
/**
 * Into `names`; -1 for joined cells.
 */
name: Array<number>, 
/**
 * 1 for a holder, 0 for blocks.
 */
holder: (0 | 1)[], 
/**
 * Bytes of the cell and all below.
 */
retained: Array<number>, 
/**
 * Bytes of its own blocks.
 */
own: Array<number>, blocks: Array<number>, 
/**
 * Bytes outside the heap of the cell and all below.
 */
outside: Array<number>, 
/**
 * Of joined cells: how many.
 */
joined: Array<number>, };

export type ErrorOf = { a: number | null, b: number, };

/**
 * What was looked at. Times are in microseconds since the Unix epoch.
 */
export type Examined = { program: string, pid: number | null, from_us: number, to_us: number, trace: ExaminedTrace | null, snapshots: Array<ExaminedSnapshot>, timeline: ExaminedTimeline, limit: MemoryLimit | null, };

/**
 * A holder in a snapshot.
 */
export type ExaminedHolder = { name: string, bytes: number, outside_bytes: number, };

/**
 * A snapshot that was read.
 */
export type ExaminedSnapshot = { file: string, taken_us: number, reachable_bytes: number, garbage_bytes: number, outside_bytes: number, 
/**
 * The largest holders.
 */
holders: Array<ExaminedHolder>, 
/**
 * What piles up in it; of the last snapshot only.
 */
piles?: Array<Finding>, };

/**
 * The process over time, by the sidecar.
 */
export type ExaminedTimeline = { points: Array<TimelinePoint>, 
/**
 * The part of the time in which the program stood still for its collector.
 */
collector: CollectorShare | null, };

/**
 * The trace that was read.
 */
export type ExaminedTrace = { file: string, rate: number, duration_us: number, 
/**
 * What its own leak rule says.
 */
verdict: string, };

/**
 * A file that could not be shown.
 */
export type FailedSnapshot = { name: string, error: string, };

/**
 * The memory of stacks, outside the heap.
 */
export type FiberStacks = { 
/**
 * With those whose continuations are dead.
 */
suspended_fibers: number, suspended_bytes: number, 
/**
 * Of threads and running fibers.
 */
running_bytes: number, 
/**
 * That the runtime keeps for later.
 */
free_bytes: number, };

/**
 * The files of a trace. An archive has them as a result that its table cannot give.
 */
export type FileFacts = { files: number, bytes: number, 
/**
 * The versions of the format, the oldest first.
 */
versions: Array<number>, };

/**
 * A suspect.
 */
export type Finding = { 
/**
 * `accumulation`, `finaliser cycle`, `ephemeron chain` or `outside memory`.
 */
kind: "accumulation" | "finaliser cycle" | "ephemeron chain" | "outside memory", 
/**
 * One sentence.
 */
text: string, 
/**
 * What holds it, from the holder down to the blocks.
 */
path: Array<string>, 
/**
 * How many blocks.
 */
elements: number, retained_bytes: number, outside_bytes: number, 
/**
 * Against an earlier snapshot, if there is one and the finding is about a set of blocks.
 */
growth?: FindingGrowth, };

/**
 * How much a set of blocks has grown.
 */
export type FindingGrowth = { elements: number, retained_bytes: number, outside_bytes: number, };

/**
 * What is wrong, or worth knowing. In the order in which findings are shown.
 */
export type FindingKind = "leak" | "threads" | "fibers" | "finaliser_cycle" | "outside_heap" | "busy_collector" | "free_memory" | "empty_tables" | "duplicate_strings" | "filling" | "garbage";

/**
 * A place that allocated blocks which a holder gained. The field names are those of the JSON.
 */
export type GainedSite = { site: Site, via?: Site, called_from: Array<Site>, 
/**
 * What of it the holder had last.
 */
size: Size, 
/**
 * The part that it did not have before.
 */
gained_bytes: number, oldest_us: number, 
/**
 * Its part of what the holder gained.
 */
share: number, 
/**
 * The lines of its source, if it was found; the site's is among them.
 */
source?: SourceExcerpt, };

/**
 * A table of rows, the greatest changes first.
 */
export type Growth = { by: string, rows: Array<GrowthRow>, other_rows: number, other_growth_bytes: number, other_growth_outside_bytes: number, };

/**
 * Whether a row is in both snapshots.
 */
export type GrowthChange = "new" | "gone" | "grown" | "shrunk" | "same";

/**
 * A row before and after.
 */
export type GrowthRow = { name: string, change: GrowthChange, before: GrowthSize, after: GrowthSize, 
/**
 * Bytes in the heap, negative if it has shrunk.
 */
growth_bytes: number, 
/**
 * The same outside the heap.
 */
growth_outside_bytes: number, };

/**
 * A size in the heap and outside of it.
 */
export type GrowthSize = { blocks: number, 
/**
 * In the heap, with headers.
 */
bytes: number, outside_bytes: number, };

/**
 * A row of a table.
 */
export type HeapRow = { name: string, 
/**
 * Roots of a holder; absent for blocks.
 */
roots?: number, 
/**
 * What is reachable from it.
 */
reachable_bytes: number, 
/**
 * What would be freed without it.
 */
exclusive_bytes: number, 
/**
 * What it reaches and no row before it does, in a fixed order; for blocks, what they
 * take themselves. These add up to all that is reachable.
 */
first_reached: HeapSize, 
/**
 * Outside the heap, freed without it; for blocks, what they keep.
 */
outside_bytes: number, 
/**
 * What it reaches first outside the heap; for blocks, what they keep.
 */
first_outside_bytes: number, 
/**
 * Mapped files, counted as `outside_bytes` is.
 */
mapped_bytes: number, };

/**
 * A size in the heap.
 */
export type HeapSize = { blocks: number, 
/**
 * With headers.
 */
bytes: number, };

/**
 * A table; what is not shown is in the last line.
 */
export type HeapTable = { by: string, rows: Array<HeapRow>, other_rows: number, other_first_reached: HeapSize, 
/**
 * The same outside the heap.
 */
other_first_outside_bytes: number, };

export type HeatCells = { size: Size, 
/**
 * The bytes of each step, and their standard errors.
 */
bytes: Array<number>, errors: Array<number>, };

export type HeatMap = { 
/**
 * When the first step begins.
 */
from_us: number, width_us: number, 
/**
 * The end of each step.
 */
times: Array<number>, 
/**
 * Those that have most come first.
 */
rows: Array<HeatRow>, other_rows: number, others: HeatCells, 
/**
 * What a cell without a sample has less of.
 */
unseen_bytes: number, 
/**
 * One in so many small blocks is in the table that the cells come from.
 */
blocks_one_in: number, };

export type HeatRow = { site: Site, size: Size, 
/**
 * The bytes of each step, and their standard errors.
 */
bytes: Array<number>, errors: Array<number>, };

/**
 * What holds the block that retains most of those that a row of a table stands for.
 */
export type HeldBlock = { row: string, block: string, retained_bytes: number, shortest: Array<string>, 
/**
 * Without any of these it would go.
 */
dominators: Array<string>, holders: Array<string>, other_holders: number, };

/**
 * What holds the blocks of a site, as `heaptap leaks --heap` says it.
 */
export type HeldSite = { 
/**
 * Which frame of a stack the site is.
 */
sites: SiteFrame, site: Site, 
/**
 * The holders with their shares.
 */
text: string, 
/**
 * The one that holds most, unless that is garbage.
 */
holder: string | null, };

/**
 * A holder that grows.
 */
export type HolderGrowth = { name: string, pace: Pace, before_bytes: number, after_bytes: number, 
/**
 * The part of it outside the heap.
 */
after_outside_bytes: number, 
/**
 * Its share of all growth.
 */
share_of_growth: number, 
/**
 * Its size in each snapshot.
 */
sizes: Array<number>, 
/**
 * What of it piles up, from the holder down to the blocks.
 */
path: Array<string>, 
/**
 * How many blocks pile up.
 */
elements: number | null, };

/**
 * What is shown. The field names are those of the JSON.
 */
export type Hot = { trace: string, metric: string, threshold: number, total: Size, fragments: Array<HotFragment>, limits: HotLimits, };

export type HotFragment = { share: number, 
/**
 * The share that is under no longer fragment.
 */
own_share: number, 
/**
 * The innermost function first.
 */
frames: Array<HotFrame>, bytes: number, 
/**
 * `None` if there is no sample, and `high` is all that is known; and where it is only known
 * to be between `low` and `high`.
 */
error: number | null, low: number, high: number, };

export type HotFrame = { 
/**
 * The most iterations of the recursion that begins here and is folded.
 */
repeats?: number, 
/**
 * Function or module; empty for a file.
 */
name: string, 
/**
 * File; empty for a module.
 */
file?: string, 
/**
 * The line; 0 except for a location.
 */
line?: number, 
/**
 * First and last character; zeros except for a location.
 */
chars?: [number, number], };

/**
 * What was lost to the bounds on memory and time.
 */
export type HotLimits = { 
/**
 * False if the search was cut short: fragments may be longer.
 */
complete: boolean, 
/**
 * The most samples that can be missing from a fragment.
 */
samples_missing: number, };

export type Info = { name: string, executable: string, host: string, pid: number, start_us: number, runtime_params: string, context: string, 
/**
 * Of several rates, the lowest.
 */
sample_rate: number, 
/**
 * All of them, if there are several.
 */
sample_rates?: Array<number>, word_bytes: number, duration_us: number, events: number, cut_short: string | null, call_paths: number, 
/**
 * The files that it was read from; absent while it is written.
 */
file: FileFacts | null, 
/**
 * The rows of the table, and how many blocks each stands for.
 */
blocks: number, blocks_one_in: number, selected: boolean, totals: Totals, timeline: ReportTimeline, limits: Limits, 
/**
 * Blocks may lack callers, so that there are no figures with a filter by them.
 */
table_lacks_callers: boolean, labels: Array<string>, domains: Array<number>, sources: Array<string>, files: Array<string>, notes: Array<string>, };

/**
 * A line over time.
 */
export type Lane = { name: string, unit: Unit, values: Array<number | null>, };

/**
 * A leak with its live size over time, and the 95 % interval of that.
 */
export type Leak = { growth: LeakGrowth, site: Site, live: Size, allocated: Size, growth_per_second: Size, slowing: boolean, survivors_from_us: number, survivors_to_us: number, 
/**
 * Bytes still alive, by the window of that time in which they were allocated.
 */
survivors: Array<number>, 
/**
 * The library functions through which the site allocates at least a quarter of it, if the site
 * is own code.
 */
via?: Array<Site>, 
/**
 * The callers under which nearly all of it lives, the nearest first.
 */
called_from: Array<CallerSite>, };

export type LeakGrowth = { times: Array<number>, live: Array<number>, low: Array<number>, high: Array<number>, };

export type Leaks = { trace: string, duration_us: number, verdict: string, conclusive: boolean, incomplete: string | null, sites: SiteFrame, leaks: Array<Leak>, suspects: Suspects, known_until_us: number, reachable?: Array<ReachableAt>, };

/**
 * A lifetime with its standard error.
 */
export type Lifetime = { us: number, error: number, };

export type LifetimeClass = { from_us: number, to_us: number, bytes: number, };

export type Lifetimes = { 
/**
 * Of blocks that were collected.
 */
classes: Array<LifetimeClass>, 
/**
 * What was not collected: how long it lives is not known.
 */
never_freed_bytes: number, 
/**
 * `None` where the trace ended first.
 */
median_us: number | null, };

/**
 * What was lost to the bounds on memory.
 */
export type Limits = { 
/**
 * One in this many objects was tracked.
 */
objects_followed_one_in: number, 
/**
 * The most samples of a call path that was joined with others, without its callers; 0 if none was.
 */
samples_missing_from_callers: number, };

export type LogLine = { time_us: number, text: string, 
/**
 * Whether the program asked the view to stop there.
 */
stop: boolean, };

/**
 * What bounds the program's memory.
 */
export type MemoryLimit = { bytes: number, 
/**
 * Whose limit it is: `control group` or `machine`.
 */
whose: string, };

/**
 * Cells of both trees in preorder, sizes in bytes.
 */
export type MergedCells = { parent: Array<number>, site: Array<number>, before: Array<number>, after: Array<number>, 
/**
 * Whether the difference is more than chance.
 */
certain: Array<boolean>, count: Array<number>, };

export type MergedTree = { sites: Array<Site>, cells: MergedCells, depth: number, };

export type Names = { functions: Array<string>, files: Array<string>, labels: Array<string>, };

/**
 * The rows that are not shown.
 */
export type OtherRows = { rows: number, share: number, samples: number, bytes: number, 
/**
 * `None` if there is no sample, and `high` is all that is known; and where it is only known
 * to be between `low` and `high`.
 */
error: number | null, low: number, high: number, };

export type OtherSeries = { rows: number, 
/**
 * Of these, the ones that are larger than those that have a line.
 */
larger: number, sum: Sum, live: Array<number>, allocated: Array<number>, };

/**
 * The answer in one word.
 */
export type Outcome = "nothing_wrong" | "found" | "cannot_tell";

/**
 * How a size grows.
 */
export type Pace = "even" | "steps" | "uneven" | "slows" | "stopped" | "turns_over" | "steady" | "unknown";

/**
 * What there is of it. The field names are those of the JSON.
 */
export type PageDiagnosis = { "state": "waiting" } | { "state": "ready", 
/**
 * The program runs, and more may be known later.
 */
so_far: boolean, diagnosis: Diagnosis, } | { "state": "failed", error: string, };

/**
 * What changed from one snapshot to a later one.
 */
export type PairGrowth = { before: number, after: number, tables: Array<Growth>, };

/**
 * A share with its standard error.
 */
export type Part = { share: number, 
/**
 * `None` if there is no sample, and nothing is known; and of promotions, if those of
 * earlier files were not seen.
 */
error: number | null, };

/**
 * What was reachable when a cycle began.
 */
export type ReachableAt = { at_us: number, 
/**
 * When that was known: marking was done.
 */
known_us: number, size: Size, };

/**
 * Everything that is shown. The field names are those of the JSON.
 */
export type ReportFigures = { trace: string, executable: string, 
/**
 * Of several rates, the lowest.
 */
sample_rate: number, 
/**
 * The rates at which blocks were sampled, from the lowest to the highest, if there are several. Every
 * figure is exact over them.
 */
sample_rates?: Array<number>, word_bytes: number, duration_us: number, events: number, 
/**
 * Why the end of the trace is missing, and until when it covers the program.
 */
cut_short: string | null, 
/**
 * Whether files of one process follow each other, of which none says what became of the
 * blocks of those before it.
 */
carried_over: boolean, 
/**
 * Whether filters left blocks out.
 */
selected: boolean, totals: Totals, timeline: ReportTimeline, table: ReportTable, limits: Limits, };

/**
 * A row of the table.
 */
export type ReportRow = { 
/**
 * Of the table's total.
 */
share: number, 
/**
 * Of a caller: it is library code, the function that own code calls, and stands for all that is
 * called inside.
 */
library?: boolean, callers?: Array<ReportRow>, 
/**
 * Function or module; empty for a file.
 */
name: string, 
/**
 * File; empty for a module.
 */
file?: string, 
/**
 * The line; 0 except for a location.
 */
line?: number, 
/**
 * First and last character; zeros except for a location.
 */
chars?: [number, number], samples: number, bytes: number, 
/**
 * `None` if there is no sample, and `high` is all that is known; and where it is only known
 * to be between `low` and `high`.
 */
error: number | null, low: number, high: number, };

export type ReportTable = { metric: string, by: By, 
/**
 * Which frame of a stack a row is about.
 */
sites: SiteFrame, rows: Array<ReportRow>, others: OtherRows, total: Sum, };

/**
 * Live bytes over time.
 */
export type ReportTimeline = { bucket_us: number, most_live_bytes: Array<number>, allocated_bytes: Array<number>, };

export type RowTable = { metric: string, by: By, sites: SiteFrame, rows: Array<TableRow>, 
/**
 * How many rows contain the text, and how many there are.
 */
matching: number, all: number, 
/**
 * Those that contain the text and are not shown: what they allocate themselves.
 */
others: OtherRows, 
/**
 * What all rows that contain the text allocate themselves.
 */
matched: Sum, 
/**
 * What all rows allocate themselves.
 */
total: Sum, 
/**
 * Why no row has a total. Rows that are no frames call nothing, and have none either.
 */
no_totals: string | null, };

export type Series = { site: Site, 
/**
 * Of the metric.
 */
sum: Sum, live: Array<number>, allocated: Array<number>, };

/**
 * The document. The field names are those of the JSON.
 */
export type Sidecar = { 
/**
 * When the trace began to which it belongs, in microseconds since the epoch.
 */
start_us: number | null, 
/**
 * What is wrong with the file.
 */
problem: string | null, 
/**
 * Microseconds between two points.
 */
width_us: number, lanes: Array<Lane>, limit_bytes: number | null, 
/**
 * What was old by then has lived through a whole major collection; missing if they are not counted.
 */
old_before_us: number | null, tree: Array<TreeLine>, log: Array<LogLine>, 
/**
 * Lines of the log that are not in the document.
 */
more_log: number, };

/**
 * The call site of a row, or the file, module, label, domain or source. The field names are those of the JSON.
 */
export type Site = { 
/**
 * Function or module; empty for a file.
 */
name: string, 
/**
 * File; empty for a module.
 */
file?: string, 
/**
 * The line; 0 except for a location.
 */
line?: number, 
/**
 * First and last character; zeros except for a location.
 */
chars?: [number, number], };

export type SiteDetails = { 
/**
 * What the site itself allocates, with the library code that it calls if sites are own code.
 */
sum: Sum, 
/**
 * With all that it calls.
 */
total: Sum, share: number, callers: Array<SiteNode>, callees: Array<SiteNode>, 
/**
 * All that the site itself has allocated, whatever the metric: of these blocks are
 * `lifetimes` and `sizes`.
 */
own_bytes: number, lifetimes: Lifetimes, sizes: Array<SizeClass>, lines: Array<SiteLine>, };

/**
 * Which frame of a stack is its site: the one that tables and cards name.
 */
export type SiteFrame = "innermost" | "own";

export type SiteLine = { line: number, sum: Sum, };

export type SiteNode = { site: Site, sum: Sum, share: number, children: Array<SiteNode>, };

/**
 * A place that allocated blocks which are alive.
 */
export type SiteRow = { site: Site, 
/**
 * How many of its blocks the trace tracks.
 */
sampled_blocks: number, samples: number, 
/**
 * What they stand for.
 */
size: Size, share: number, 
/**
 * Ages when the snapshot was taken: half are younger.
 */
median_age_us: number, oldest_us: number, 
/**
 * The holder that retains most of them, and its share of them.
 */
holder: string, holder_share: number, };

/**
 * Where what is alive was allocated.
 */
export type SiteTable = { trace: string, 
/**
 * The holder whose blocks are counted; absent for all.
 */
within: string | null, 
/**
 * What it retains, or all that is reachable: exact.
 */
exact_bytes: number, 
/**
 * The same outside the heap, without mapped files.
 */
exact_outside_bytes: number, 
/**
 * The same, estimated from the samples.
 */
estimated: Size, sampled_blocks: number, rows: Array<SiteRow>, other_rows: number, other_share: number, };

/**
 * An estimated size. The field names are those of the JSON.
 */
export type Size = { bytes: number, 
/**
 * `None` if there is no sample, and `high` is all that is known; and where it is only known
 * to be between `low` and `high`.
 */
error: number | null, low: number, high: number, };

export type SizeClass = { from: number, to: number, bytes: number, };

/**
 * A snapshot.
 */
export type Snapshot = { name: string, pid: number | null, 
/**
 * The trace of the page that was being written then, and the time in it.
 */
trace: number | null, at_us: number | null, tables: Array<HeapTable>, stacked_rows: Array<StackedRows>, findings: Array<Finding>, tree: DominatorTree, paths: Array<HeldBlock>, 
/**
 * Where it was allocated, if its trace is there.
 */
sites: SiteTable | null, 
/**
 * What holds the blocks of the sites that have most in it, by the samples of its trace.
 */
held_sites: Array<HeldSite>, program: string, runtime: string, 
/**
 * In microseconds since the Unix epoch; absent if it is not known.
 */
taken_us: number | null, reason: string, all: HeapSize, reachable: HeapSize, outside_bytes: number, 
/**
 * Mapped files, which are not in `outside_bytes`.
 */
mapped_bytes: number, 
/**
 * Absent if the runtime has no fibers.
 */
stacks?: FiberStacks, 
/**
 * Roots, and pointers of what is alive, that lead to no block.
 */
dangling: number, };

/**
 * All snapshots of a page, in the order in which they were taken. The field names are those of its JSON.
 */
export type SnapshotDocument = { snapshots: Array<Snapshot>, failed: Array<FailedSnapshot>, growths: Array<PairGrowth>, };

/**
 * Lines of a source file.
 */
export type SourceExcerpt = { 
/**
 * The number of the first of them.
 */
first: number, lines: Array<string>, };

export type SourceLine = { line: number, 
/**
 * What it allocates itself, with the library code that it calls if sites are own code.
 */
sum: Sum, 
/**
 * With all that it calls.
 */
total: Sum | null, functions: Array<string>, };

export type SourceLines = { file: string, lines: Array<SourceLine>, 
/**
 * What the file allocates itself, and with all that it calls.
 */
sum: Sum, total: Sum | null, 
/**
 * Why there are no totals.
 */
no_totals: string | null, };

/**
 * The rows of a table that reach most first, which the page stacks over time. Those of the table itself are the
 * ones that hold most alone.
 */
export type StackedRows = { by: string, 
/**
 * Names and the bytes that they reach first, the most first.
 */
rows: Array<[string, number]>, };

/**
 * Samples, and the size they stand for. Of several rates, as many samples as have the same relative error
 * at one rate.
 */
export type Sum = { samples: number, bytes: number, 
/**
 * `None` if there is no sample, and `high` is all that is known; and where it is only known
 * to be between `low` and `high`.
 */
error: number | null, low: number, high: number, };

export type Suspect = { site: Site, growth: Size, live: Size, allocated: Size, 
/**
 * Why it is not decided.
 */
undecided: string, };

/**
 * Sites that may leak, in a trace that cannot show whether they do.
 */
export type Suspects = { 
/**
 * They grew since then: the middle of the run.
 */
since_us: number, 
/**
 * Those that grew most come first.
 */
rows: Array<Suspect>, other_rows: number, };

export type TableRow = { share: number, 
/**
 * With all that it calls: what is allocated while it is on the stack.
 */
total: Sum | null, total_share: number, 
/**
 * Of what it allocates itself.
 */
blocks: BlockCount | null, 
/**
 * Function or module; empty for a file.
 */
name: string, 
/**
 * File; empty for a module.
 */
file?: string, 
/**
 * The line; 0 except for a location.
 */
line?: number, 
/**
 * First and last character; zeros except for a location.
 */
chars?: [number, number], samples: number, bytes: number, 
/**
 * `None` if there is no sample, and `high` is all that is known; and where it is only known
 * to be between `low` and `high`.
 */
error: number | null, low: number, high: number, };

export type Timeline = { 
/**
 * When the first step begins.
 */
from_us: number, width_us: number, points: number, 
/**
 * The end of each step.
 */
times: Array<number>, series: Array<Series>, others: OtherSeries, total: TotalSeries, peak_us: number, peak: Size, };

/**
 * A moment, or the largest sizes of an interval that ends then.
 */
export type TimelinePoint = { at_us: number, heap_bytes: number | null, 
/**
 * The part of the heap that is not free. Some of it may be dead.
 */
used_bytes: number | null, rss_bytes: number | null, threads: number | null, 
/**
 * Major cycles that have ended, in all.
 */
cycles: number | null, 
/**
 * Bytes allocated in all.
 */
allocated_bytes: number | null, };

export type TotalSeries = { live: Array<number>, most_live: Array<number>, low: Array<number>, high: Array<number>, allocated: Array<number>, };

export type Totals = { samples: number, allocated: Size, 
/**
 * The part of `allocated` outside the heap.
 */
external: Size, 
/**
 * Corrected for having been chosen as the largest: see `live_at_peak`.
 */
peak: Size, 
/**
 * What was seen alive at the moment of the peak, to which the rows of that metric add up.
 * Of many noisy sizes the largest is too large by chance, so it is more than `peak`.
 */
live_at_peak: Size, 
/**
 * The part of `peak` outside the heap.
 */
peak_external: Size, peak_us: number, live: Size, 
/**
 * The part of `live` outside the heap.
 */
live_external: Size, 
/**
 * The part of `live` that no collection has seen.
 */
live_young: Size, promotion: Part, median_lifetime: Lifetime | null, ninth_decile_lifetime: Lifetime | null, survivors: Part, };

export type TreeAnswer = { total: Sum, focus_total: Sum, sites: Array<Site>, cells: Cells, depth: number, 
/**
 * The standard error of `samples` is √(a·samples + b·samples²) bytes; of several rates, at most that.
 */
error_of: ErrorOf, 
/**
 * Bytes for each of `samples`, which are a count that is no number of samples if the trace has several rates.
 */
scale: number, 
/**
 * Frames that were folded away.
 */
omitted: number, };

export type TreeLine = { level: number, label: string, 
/**
 * `None` for a line above others.
 */
probe?: TreeProbe, };

export type TreeProbe = { name: string, kind: string, state: string, unit: Unit, values?: Array<number | null>, };

/**
 * What the numbers of a line are.
 */
export type Unit = "bytes" | "share" | "ns" | "rate" | "number";
