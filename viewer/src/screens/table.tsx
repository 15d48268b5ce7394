// The table of `heaptap report`, with the panel about the open row.

import { useEffect, useRef, useState } from "preact/hooks";
import type { By, Site } from "../query/types";
import { NothingSelected, Problem } from "../parts/messages";
import { ErrorBar, SizeCells } from "../parts/numbers";
import { SitePanel } from "../parts/site-panel";
import { parts, sameSite, siteKey, siteOf } from "../text/sites";
import { count, percent } from "../text/units";
import { rowTitle } from "../text/words";
import { useQuery } from "../view/ask";
import { setActive } from "../view/commands";
import { metricTitle } from "../view/metric";
import { common } from "../view/request";
import { change, view } from "../view/store";
import { BYS, TREE_BYS } from "../view/view";
import { Hot } from "./hot";

const PAGE = 200;

/** What the second column names, where rows have one. */
const SECOND: Partial<Record<string, string>> = { function: "file", location: "function" };

export function Table() {
  const current = view.value;
  const [top, setTop] = useState(PAGE);
  const hotBy = current.hot ? TREE_BYS.find((by) => by === current.by) ?? "function" : null;
  const { answer, error, stale } = useQuery("table", "report", hotBy ? null : { ...common(current), by: current.by, top });
  const rows = answer && answer.table.by === current.by && answer.table.sites === current.sites ? answer.table.rows : [];
  useRowKeys(rows, current.row, (row) => {
    change({ row: siteOf(row) }, "within");
    document.querySelector('tr[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  });
  const most = rows[0]?.high ?? 1;
  if (hotBy) {
    return (
      <section class="rows" aria-label="Hot fragments">
        <Tools title={`Hot fragments by ${hotBy}`} by={hotBy} bys={TREE_BYS} />
        <Hot by={hotBy} />
      </section>
    );
  }
  return (
    <div class={current.row ? "with-panel" : ""}>
      <section class={`rows${stale ? " stale" : ""}`} aria-label="Table">
        <Tools title={`${metricTitle(answer?.table.metric ?? "")} by ${rowTitle(current.by, current.sites)}`} by={current.by} bys={BYS} />
        {error && <Problem text={error} />}
        {answer && answer.table.total.samples === 0 && <NothingSelected />}
        {answer && answer.table.total.samples > 0 && (
          <div class="table-box" tabIndex={0} role="region" aria-label="Rows">
            <table>
              <thead><tr><th class="num" scope="col">size</th><th class="num" scope="col">error</th><th class="num" scope="col">share</th><th class="bar-col" scope="col"><span class="hidden">95 % interval</span></th><th scope="col">{rowTitle(current.by, current.sites)}</th>{SECOND[current.by] ? <th class="wide" scope="col">{SECOND[current.by]}</th> : <td class="wide" />}</tr></thead>
              <tbody>
                {rows.map((row) => {
                  const [name, more] = parts(row);
                  const open = current.row !== null && sameSite(current.row, siteOf(row));
                  return (
                    <tr key={siteKey(row)} aria-selected={open} onClick={() => change({ row: open ? null : siteOf(row) }, "within")}>
                      <SizeCells size={row} />
                      <td class="num">{percent(row.share)}</td>
                      <td class="bar-col"><ErrorBar size={row} most={most} /></td>
                      <td class="name"><button type="button" class="plain" title={name}>{name}</button></td>
                      <td class="wide faint" title={more}>{more}</td>
                    </tr>
                  );
                })}
              </tbody>
              <tfoot>
                {answer.table.others.rows > 0 && (
                  <tr><SizeCells size={answer.table.others} /><td class="num">{percent(answer.table.others.share)}</td><td class="bar-col" />
                    <td colSpan={2}>{count(answer.table.others.rows, "other", "others")} <button type="button" class="plain link" onClick={() => setTop(top * 5)}>show more</button></td></tr>
                )}
                <tr><SizeCells size={answer.table.total} /><td class="num">100.0 %</td><td class="bar-col" /><td colSpan={2}>total</td></tr>
              </tfoot>
            </table>
          </div>
        )}
      </section>
      {current.row && <SitePanel site={current.row} by={current.by} sites={current.sites} onOpen={(site) => change({ row: site })} />}
    </div>
  );
}

function Tools({ title, by, bys }: { title: string; by: By; bys: readonly By[] }) {
  const { hot } = view.value;
  return (
    <div class="tools">
      <h2>{title}</h2>
      <span class="tools-right">
        <button type="button" aria-pressed={hot} title="Runs of calls under which much is allocated, as heaptap hot shows them" onClick={() => change({ hot: !hot, row: null })}>hot fragments</button>
        <label>rows <select aria-label="What a row is" value={by} onChange={(event) => change({ by: event.currentTarget.value as By, row: null })}>
          {bys.map((each) => <option value={each}>{each}</option>)}
        </select></label>
      </span>
    </div>
  );
}

/** Up and down move the open row. */
export function useRowKeys<T extends Site>(rows: readonly T[], open: Site | null, show: (row: T) => void): void {
  // Keys may come faster than effects run.
  const latest = useRef({ rows, open, show });
  latest.current = { rows, open, show };
  useEffect(() =>
    setActive({
      move(direction) {
        const { rows, open, show } = latest.current;
        if (direction === "left" || direction === "right" || rows.length === 0) return;
        const at = open ? rows.findIndex((row) => sameSite(siteOf(row), open)) : -1;
        const next = rows[Math.min(rows.length - 1, Math.max(0, at + (direction === "down" ? 1 : -1)))];
        if (next) show(next);
      },
      enter() {
        const { rows, open, show } = latest.current;
        if (!open && rows[0]) show(rows[0]);
      },
    }), []);
}

