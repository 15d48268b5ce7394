// Two traces compared: a merged icicle, as wide as the larger side, and the table of `heaptap diff`.
// Orange ▲ grew, blue ▼ shrank; only what differs by more than chance has a colour.

import { useMemo } from "preact/hooks";
import type { By, Change, Diff as Answer, Site } from "../query/types";
import { Icicle } from "../icicle/icicle";
import { asTree } from "../icicle/merged";
import type { Layout } from "../icicle/layout";
import { Message, Problem, TraceMessage } from "../parts/messages";
import { SizeCells } from "../parts/numbers";
import { parts } from "../text/sites";
import { bytes, count, grouped, percent, signedBytes, sized } from "../text/units";
import { capital, rowTitle } from "../text/words";
import { useQuery } from "../view/ask";
import { palette } from "../view/colour";
import { focusOn } from "../view/drill";
import { compared } from "../view/request";
import { change, config, traces, view } from "../view/store";
import { BYS } from "../view/view";
import { MIN_SHARE, MOST_CELLS } from "./flame";

export function Diff() {
  if (traces.value.length < 2) {
    return (
      <Message title="Diff compares two traces">
        <p>This page holds one. Name two, the older one first: <code>heaptap serve before.ctf after.ctf</code> or <code>heaptap export before.ctf after.ctf --to html -o page.html</code>.</p>
      </Message>
    );
  }
  const { before, after } = compared(view.value);
  for (const trace of [before, after]) {
    const state = traces.value[trace];
    if (!state || !("info" in state)) return <TraceMessage state={state} name={config.traces[trace]?.name ?? `trace ${trace}`} />;
  }
  return <Compared />;
}

function Compared() {
  const current = view.value;
  const ask = compared(current);
  const diff = useQuery("diff", "diff", { ...ask, by: current.by, top: 200 });
  const tree = useQuery("diff-tree", "diff_tree", current.diffTable ? null : { ...ask, by: current.treeBy, invert: current.invert, focus: [...current.focus], fold: true, min_share: MIN_SHARE, most: MOST_CELLS });
  const merged = useMemo(() => tree.answer && asTree(tree.answer), [tree.answer]);
  return (
    <section class={`diff${diff.stale || tree.stale && !current.diffTable ? " stale" : ""}`} aria-label="Diff">
      <DiffHead answer={diff.answer} before={ask.before} after={ask.after} />
      {diff.error && <Problem text={diff.error} />}
      {tree.error && <Problem text={tree.error} />}
      {!current.diffTable && merged && (
        <>
          <Icicle
            tree={merged}
            focus={current.focus}
            selected={current.selected}
            searched={current.search}
            colour={diffFill}
            sign={diffSign}
            more={diffLines}
            onSelect={(selected: Site[]) => change({ selected }, "within")}
            onFocus={focusOn}
          />
          <p class="key faint"><span><i class="swatch more" /> ▲ grew</span> <span><i class="swatch less" /> ▼ shrank</span> <span><i class="swatch same" /> within chance</span> <span>width: the larger side</span></p>
        </>
      )}
      {current.diffTable && diff.answer && <DiffTable answer={diff.answer} />}
    </section>
  );
}

function DiffHead({ answer, before, after }: { answer: Answer | null; before: number; after: number }) {
  const current = view.value;
  const names = config.traces.map(({ name }, at) => name || `trace ${at}`);
  const pick = (label: string, value: number, set: (trace: number) => void) => (
    <select aria-label={label} value={String(value)} onChange={(event) => set(Number(event.currentTarget.value))}>
      {names.map((name, at) => <option value={String(at)}>{name}</option>)}
    </select>
  );
  return (
    <>
      <div class="tools">
        <h2>{pick("Before", before, (trace) => change({ before: trace, trace: trace === after ? before : after }))} → {pick("After", after, (trace) => change({ trace, before: trace === before ? after : before }))}</h2>
        <span class="tools-right">
          {current.diffTable && (
            <label>rows <select aria-label="What a row is" value={current.by} onChange={(event) => change({ by: event.currentTarget.value as By })}>{BYS.map((by) => <option value={by}>{by}</option>)}</select></label>
          )}
          {!current.diffTable && <button type="button" aria-pressed={current.invert} onClick={() => change({ invert: !current.invert, focus: [], selected: [] })}>inverted</button>}
          {!current.diffTable && current.focus.length > 0 && <button type="button" onClick={() => focusOn([])}>whole</button>}
          <button type="button" aria-pressed={current.diffTable} onClick={() => change({ diffTable: !current.diffTable })}>table</button>
          {!current.diffTable && <input id="search" type="search" placeholder="search  /" aria-label="Search frames" spellcheck={false} value={current.search} onInput={(event) => change({ search: event.currentTarget.value }, "search")} />}
        </span>
      </div>
      {answer && <p class="sentence">{capital(answer.metric)}: {sized(answer.total.before)} → {sized(answer.total.after)}, {totalWord(answer.total)}</p>}
    </>
  );
}

function totalWord(total: Change): string {
  return total.kind === "unchanged" ? "no difference beyond sampling error" : `${total.kind} by ${bytes(Math.abs(total.difference_bytes))}`;
}

function sides(layout: Layout, cell: number): { before: number; after: number; certain: boolean } {
  const { before = [], after = [], certain = [] } = layout.tree;
  return { before: before[cell] ?? 0, after: after[cell] ?? 0, certain: certain[cell] ?? false };
}

function diffFill(layout: Layout, cell: number): string {
  const { before, after, certain } = sides(layout, cell);
  const look = palette();
  return !certain ? look.same : after > before ? look.more : look.less;
}

function diffSign(layout: Layout, cell: number): string {
  const { before, after, certain } = sides(layout, cell);
  return !certain ? "" : after > before ? "▲ " : "▼ ";
}

function diffLines(layout: Layout, cell: number): string[] {
  const { before, after, certain } = sides(layout, cell);
  const share = before > 0 ? ` (${after >= before ? "+" : "−"}${percent(Math.abs(after / before - 1))})` : "";
  return [
    `${bytes(before)} → ${bytes(after)}`,
    certain ? `${after > before ? "▲" : "▼"} ${signedBytes(after - before)}${share}` : "within chance",
  ];
}

function DiffTable({ answer }: { answer: Answer }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Changes">
      {answer.changes.length > 0 && (
        <table>
          <thead><tr><th class="num" scope="col" colSpan={2}>before</th><th class="num" scope="col" colSpan={2}>after</th><th class="num" scope="col">difference</th><th class="num" scope="col">σ apart</th><th scope="col">{rowTitle(answer.by, answer.sites)}</th><th class="wide" scope="col">file</th></tr></thead>
          <tbody>
            {answer.changes.map((row) => {
              const [name, more] = parts(row);
              const grew = row.difference_bytes > 0;
              return (
                <tr>
                  <SizeCells size={row.before} /><SizeCells size={row.after} />
                  <td class={`num ${grew ? "grew" : "shrank"}`}>{grew ? "▲" : "▼"} {signedBytes(row.difference_bytes)}</td>
                  <td class="num">{row.distance.toFixed(1).replace("-", "−")}</td>
                  <td class="name">{name}{row.kind === "new" || row.kind === "gone" ? <span class="tag">{row.kind}</span> : null}</td>
                  <td class="wide faint">{more}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {answer.not_shown > 0 && <p class="faint">and {grouped(answer.not_shown)} more</p>}
      <p class="faint">{count(answer.within_chance, "site differs", "sites differ")} by no more than chance.</p>
    </div>
  );
}
