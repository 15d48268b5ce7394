// The icicle of the trace, with its toolbar and the panel about the selected frame.

import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Site, Tree } from "../query/types";
import { Icicle } from "../icicle/icicle";
import type { Layout } from "../icicle/layout";
import { NothingSelected, Problem } from "../parts/messages";
import { Sized } from "../parts/numbers";
import { SaveMenu } from "../parts/save-menu";
import { SitePanel } from "../parts/site-panel";
import { copyStack, flamePicture, saveFlameCsv, type Flame as Saved } from "../saving/flame";
import { savePng, saveSvg } from "../saving/picture";
import { asBy } from "../text/sites";
import { count, percent, sized } from "../text/units";
import { capital } from "../text/words";
import { useQuery } from "../view/ask";
import { palette, siteColour } from "../view/colour";
import { focusOn } from "../view/drill";
import { metricPhrase } from "../view/metric";
import { common } from "../view/request";
import { change, config, view } from "../view/store";
import { TREE_BYS } from "../view/view";

/** More cells than this are joined by the query. */
export const MOST_CELLS = 100_000;
/** Of cells that can be zoomed into or searched. */
export const MIN_SHARE = 1 / 20_000;
/** Of cells that can be seen: half a pixel of the widest usual screen. */
const SEEN_SHARE = 1 / 4096;

/** The request of which cells were asked for that are too small to be seen without a zoom. */
const refined = signal("");

/** The tree: at first what can be seen, and smaller cells for a search or a zoom. */
export function useTree() {
  const current = view.value;
  const request = {
    ...common(current),
    by: current.treeBy,
    invert: current.invert,
    focus: [...current.focus],
    fold: true,
    most: MOST_CELLS,
  };
  const key = JSON.stringify(request);
  const refine = () => { refined.value = key; };
  const fine = current.search !== "" || current.across !== null || refined.value === key;
  useEffect(() => {
    if (fine) refine();
  }, [fine, key]);
  return { ...useQuery("tree", "tree", { ...request, min_share: fine ? MIN_SHARE : SEEN_SHARE }), refine };
}

export function moduleFill(layout: Layout, cell: number): string {
  return layout.isJoined(cell) ? palette().line : siteColour(layout.site(cell));
}

export function Flame({ rows, panel }: { rows?: number; panel: boolean }) {
  const { answer: tree, error, stale, refine } = useTree();
  const current = view.value;
  const selected = current.selected.at(-1) ?? current.focus.at(-1);
  return (
    <div class={panel ? "with-panel" : ""}>
      <section class={`flame${stale ? " stale" : ""}`} aria-label="Call tree">
        <FlameTools tree={tree} />
        {error && <Problem text={error} />}
        {tree && tree.total.samples === 0 && <NothingSelected />}
        {tree && tree.total.samples > 0 && (
          <Icicle
            tree={tree}
            focus={current.focus}
            selected={current.selected}
            searched={current.search}
            colour={moduleFill}
            onSelect={(selected: Site[]) => change({ selected }, "within")}
            onFocus={focusOn}
            across={current.across}
            onZoom={(across) => {
              if (across) refine();
              change({ across }, "zoom");
            }}
            searching={stale}
            {...(rows === undefined ? {} : { rows })}
          />
        )}
        <p class="key faint"><span><i class="hatched" /> error over 25 %</span> <span><i class="swatch joined" /> small frames joined</span> <span>double click or Enter focuses, / searches</span></p>
      </section>
      {panel && (selected ? (
        <SitePanel site={asBy(selected, current.treeBy)} by={current.treeBy} sites="innermost" onOpen={(site) => change({ tab: "table", by: current.treeBy, row: site })}>
          {tree && <CellFacts tree={tree} />}
        </SitePanel>
      ) : (
        <aside class="panel" aria-label="Selected frame"><p class="faint">Select a frame to see who calls it, what it calls, and how long its blocks live.</p></aside>
      ))}
    </div>
  );
}

/** What the flame shows now, for those who take it away. */
function shownFlame(tree: Tree): Saved {
  const { focus, selected, search } = view.value;
  const title = `${config.traces[view.value.trace]?.name ?? ""}: ${metricPhrase.value}, ${sized(tree.total)}`;
  return { tree, focus, selected, searched: search, title, colour: moduleFill };
}

const SAVES: readonly { name: string; help: string; save(flame: Saved): void | Promise<void> }[] = [
  { name: "SVG", help: "picture of all rows, to be enlarged or edited", save: (flame) => saveSvg(flamePicture(flame)) },
  { name: "PNG", help: "picture of all rows", save: (flame) => savePng(flamePicture(flame)) },
  { name: "CSV", help: "the calls below the selected frame, or all", save: saveFlameCsv },
];

function CellFacts({ tree }: { tree: Tree }) {
  const current = view.value;
  return (
    <>
      {current.focus.length > 0 && <p class="faint">in focus: <Sized size={tree.focus_total} />, {percent(tree.focus_total.samples / (tree.total.samples || 1))} of the total</p>}
      {current.selected.length > 0 && <div class="panel-tools">
        <button type="button" onClick={() => focusOn([...current.focus, ...current.selected])}>focus</button>
        <CopyStack tree={tree} />
      </div>}
    </>
  );
}

function CopyStack({ tree }: { tree: Tree }) {
  const copied = useSignal(false);
  const copy = async () => {
    await copyStack(shownFlame(tree));
    copied.value = true;
    setTimeout(() => { copied.value = false; }, 1500);
  };
  return <button type="button" title="Copy the calls from the outermost to this frame, with their sizes" onClick={copy}>{copied.value ? "copied" : "copy stack"}</button>;
}

/** How many frames stand in cells that join small ones. */
function joinedFrames({ site, count }: Tree["cells"]): number {
  return site.reduce((sum, number, cell) => (number < 0 && cell > 0 ? sum + (count[cell] ?? 0) : sum), 0);
}

function FlameTools({ tree }: { tree: Tree | null }) {
  const current = view.value;
  const joined = tree ? joinedFrames(tree.cells) : 0;
  return (
    <div class="tools">
      <h2>{capital(metricPhrase.value)}{tree && <span class="total"> <Sized size={tree.total} /></span>}</h2>
      <span class="tools-right">
        {joined > 0 && <span class="faint apart">{count(joined, "small frame", "small frames")} joined</span>}
        {current.focus.length > 0 && <button type="button" title="Back to the whole (Backspace steps out)" onClick={() => focusOn([])}>whole</button>}
        <label>a frame is a <select aria-label="What a frame is" value={current.treeBy} onChange={(event) => change({ treeBy: event.currentTarget.value as typeof current.treeBy, focus: [], selected: [] })}>
          {TREE_BYS.map((by) => <option value={by}>{by}</option>)}
        </select></label>
        <button type="button" aria-pressed={current.invert} title="Allocation sites at the top (i)" onClick={() => change({ invert: !current.invert, focus: [], selected: [] })}>inverted</button>
        {tree && tree.total.samples > 0 && <SaveMenu label="Save the call tree" items={SAVES.map(({ name, help, save }) => ({ name, help, save: () => save(shownFlame(tree)) }))} />}
        <input id="search" type="search" placeholder="search  /" aria-label="Search frames" spellcheck={false} value={current.search} onInput={(event) => change({ search: event.currentTarget.value }, "search")} />
      </span>
    </div>
  );
}
