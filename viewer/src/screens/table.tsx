// The table: what each row allocates itself, as in `heaptap report`, and what it has with all that it
// calls; with the panel about the open row.

import { useEffect, useRef, useState } from "preact/hooks";
import type { By, RowTable, Site, TableRow } from "../query/types";
import { NothingSelected, Problem } from "../parts/messages";
import { EndOf } from "../parts/end-of";
import { blocksText, ErrorBar, SizeCells } from "../parts/numbers";
import { RowFilter } from "../parts/row-filter";
import { SitePanel } from "../parts/site-panel";
import { SortHead } from "../parts/sort-head";
import { tableCsv } from "../saving/csv";
import { fileName, saveText } from "../saving/file";
import { parts, sameSite, siteKey, siteOf } from "../text/sites";
import { meaning } from "../text/glossary";
import { count, grouped, percent } from "../text/units";
import { capital, rowTitle } from "../text/words";
import { useQuery } from "../view/ask";
import { setActive } from "../view/commands";
import { isThinned } from "../view/exact";
import { metricTitle } from "../view/metric";
import { common } from "../view/request";
import { change, client, exact, notice, view } from "../view/store";
import { BYS, sortOf, TREE_BYS, type View } from "../view/view";
import { Hot } from "./hot";

const PAGE = 200;

/** What the second column names, where rows have one. */
const SECOND: Partial<Record<string, string>> = { function: "file", location: "function" };

function ask(current: View, top: number) {
  const { by, ascending } = sortOf(current.sort);
  return { ...common(current), by: current.by, top, sort: by, ascending, text: current.find };
}

export function Table() {
  const current = view.value;
  const [top, setTop] = useState(PAGE);
  const hotBy = current.hot ? TREE_BYS.find((by) => by === current.by) ?? "function" : null;
  const { answer, error, stale } = useQuery("table", "table", hotBy ? null : ask(current, top));
  const table = answer && answer.by === current.by && answer.sites === current.sites ? answer : null;
  useRowKeys(table?.rows ?? [], current.row, (row) => {
    change({ row: siteOf(row) }, "within");
    document.querySelector('tr[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  });
  if (hotBy) {
    return (
      <section class="rows" aria-label="Hot fragments">
        <Hot by={hotBy} tools={(onSave) => <Tools title={`Hot fragments by ${hotBy}`} by={hotBy} bys={TREE_BYS} onSave={onSave} />} />
      </section>
    );
  }
  return (
    <div class={current.row ? "with-panel" : ""}>
      <section class={`rows${stale ? " stale" : ""}`} aria-label="Table">
        <Tools title={`${capital(metricTitle(answer?.metric ?? ""))} by ${rowTitle(current.by, current.sites)}`} by={current.by} bys={BYS} onSave={saveTable} filter />
        {error && <Problem text={error} />}
        {table?.no_totals && <p class="faint prose">No totals: {table.no_totals}.</p>}
        {table && table.total.samples === 0 && <NothingSelected />}
        {table && table.total.samples > 0 && <Rows table={table} onMore={() => setTop(top * 5)} />}
      </section>
      {current.row && <SitePanel site={current.row} by={current.by} sites={current.sites} onOpen={(site) => change({ row: site })} />}
    </div>
  );
}

/** All rows that contain the text, also those that are not shown yet. */
function saveTable(): void {
  const request = ask(view.value, 0);
  client.ask("save-table", "table", request, (outcome) => {
    if ("rows" in outcome) saveText(fileName(`by-${request.by}`, "csv"), "text/csv", tableCsv(outcome));
    else notice(outcome.error);
  }, exact.value && isThinned(request));
}

function Rows({ table, onMore }: { table: RowTable; onMore(): void }) {
  const current = view.value;
  const { by, ascending } = sortOf(current.sort);
  const hasTotals = table.rows.some(({ total }) => total !== null);
  const hasBlocks = table.rows.some(({ blocks }) => blocks !== null);
  const byTotal = by === "total" && hasTotals;
  const most = Math.max(1, ...table.rows.map((row) => (byTotal ? row.total?.high : row.high) ?? 0));
  const head = (column: Parameters<typeof SortHead>[0]["column"], title: string, help: string, look = "num") =>
    <SortHead column={column} title={title} help={help} look={look} order={by === column ? (ascending ? "ascending" : "descending") : null} />;
  const columns = 3 + (hasTotals ? 2 : 0) + (hasBlocks ? 1 : 0);
  return (
    <>
      <div class="table-box" tabIndex={0} role="region" aria-label="Rows">
        <table>
          <thead>
            <tr>
              {head("self", "self", meaning("self"))}<th class="num err" scope="col" title={meaning("error")}>error</th>
              {hasTotals && <>{head("total", "total", meaning("total"))}<th class="num err wide-only" scope="col">error</th></>}
              <th class="num wide-only" scope="col">{byTotal ? "of total" : "share"}</th>
              <th class="bar-col" scope="col" title="With its 95 % interval">{byTotal ? "total" : "self"}, 95 %</th>
              {hasBlocks && head("blocks", "blocks", `Of what it allocates itself. ${meaning("block")}`, "num wide-only")}
              {head("name", rowTitle(current.by, current.sites), "", "")}
              {SECOND[current.by] ? head("more", SECOND[current.by]!, "", "wide") : <td class="wide" />}
            </tr>
          </thead>
          <tbody>{table.rows.map((row) => <Row key={siteKey(row)} row={row} hasTotals={hasTotals} hasBlocks={hasBlocks} byTotal={byTotal} most={most} />)}</tbody>
          <tfoot>
            {table.others.rows > 0 && (
              <tr><SizeCells size={table.others} /><td colSpan={columns}>
                {count(table.others.rows, "other row", "other rows")} <button type="button" class="plain link" onClick={onMore}>show more</button></td></tr>
            )}
            {current.find !== "" && <tr><SizeCells size={table.matched} /><td colSpan={columns}>{grouped(table.matching)} of {count(table.all, "row", "rows")} with “{current.find}”</td></tr>}
            <tr><SizeCells size={table.total} /><td colSpan={columns}>all rows</td></tr>
          </tfoot>
        </table>
      </div>
      {table.rows.length === 0 && <p class="prose">No row contains “{current.find}”.</p>}
    </>
  );
}

function Row({ row, hasTotals, hasBlocks, byTotal, most }: { row: TableRow; hasTotals: boolean; hasBlocks: boolean; byTotal: boolean; most: number }) {
  const current = view.value;
  const [name, more] = parts(row);
  const open = current.row !== null && sameSite(current.row, siteOf(row));
  const bar = byTotal ? row.total : row;
  return (
    <tr aria-selected={open} onClick={() => change({ row: open ? null : siteOf(row) }, "within")}>
      <SizeCells size={row} />
      {hasTotals && (row.total ? <SizeCells size={row.total} errorLook="wide-only" /> : <><td class="num" /><td class="num err wide-only" /></>)}
      <td class="num wide-only">{percent(byTotal ? row.total_share : row.share)}</td>
      <td class="bar-col">{bar && <ErrorBar size={bar} most={most} />}</td>
      {hasBlocks && <td class="num wide-only" title={row.blocks ? `estimated from ${count(row.blocks.sampled, "block", "blocks")} of the page; ${count(row.samples, "sample", "samples")} in all` : ""}>{row.blocks && blocksText(row.blocks)}</td>}
      <td class="name"><button type="button" class="plain" title={name}><EndOf text={name} /></button></td>
      <td class="wide faint" title={more}>{more}</td>
    </tr>
  );
}

interface ToolsProps {
  title: string;
  by: By;
  bys: readonly By[];
  /** Saves what is shown; null while there is nothing. */
  onSave: (() => void) | null;
  filter?: boolean;
}

function Tools({ title, by, bys, onSave, filter }: ToolsProps) {
  const { hot } = view.value;
  return (
    <div class="tools">
      <h2>{title}</h2>
      <span class="tools-right">
        {filter && <RowFilter />}
        <button type="button" aria-pressed={hot} title="Runs of calls under which much is allocated, as heaptap hot shows them" onClick={() => change({ hot: !hot, row: null })}>hot fragments</button>
        <label>rows <select aria-label="What a row is" value={by} onChange={(event) => change({ by: event.currentTarget.value as By, row: null })}>
          {bys.map((each) => <option value={each}>{each}</option>)}
        </select></label>
        {onSave && <button type="button" title={`Save all ${hot ? "fragments" : "rows with this filter, in this order,"} as comma-separated values`} onClick={onSave}>CSV</button>}
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
