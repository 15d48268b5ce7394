// The tables of `heaptap heap`: what is reachable from a row, what would be freed without it, and
// what it reaches first, which adds up to the whole. A row opens the panel about it.

import { useEffect, useRef } from "preact/hooks";
import { visible } from "../text/sites";
import { bytes, grouped, percent } from "../text/units";
import { setActive } from "../view/commands";
import { changeHeap, view } from "../view/store";
import { RowPanel } from "./row-panel";
import type { HeapRow, HeapTable, Snapshot } from "./types";

type Column = "reachable" | "exclusive" | "first" | "outside";
/** A narrow screen has room for the others only; the panel about a row has all. */
const onWide = (column: Column) => (column === "reachable" || column === "outside" ? " wide-only" : "");
const COLUMNS: [Column, string, (row: HeapRow) => number][] = [
  ["reachable", "All that can be reached from the row; rows overlap", (row) => row.reachable_bytes],
  ["exclusive", "What only the row holds: it would be freed without it", (row) => row.exclusive_bytes],
  ["first", "What the row reaches and no row before it does; of blocks, what they take themselves", (row) => row.first_reached.bytes],
  ["outside", "Memory outside the heap, freed without it", (row) => row.outside_bytes],
];

/** By a column, the largest first, or with `-` the smallest; without one, as the command line prints them. */
export function sorted(rows: readonly HeapRow[], sort: string): readonly HeapRow[] {
  const up = sort.startsWith("-");
  const column = COLUMNS.find(([name]) => name === sort.slice(up ? 1 : 0));
  if (!column) return rows;
  const [, , value] = column;
  return [...rows].sort((a, b) => (up ? value(a) - value(b) : value(b) - value(a)));
}

export function HeapTables({ snapshot }: { snapshot: Snapshot }) {
  const heap = view.value.heap;
  const table = snapshot.tables.find(({ by }) => by === heap.table) ?? snapshot.tables[0];
  const rows = sorted(table?.rows ?? [], heap.sort);
  useOpenRow(rows, heap.row);
  if (!table) return <section class="rows" aria-label="Tables"><p class="prose">Nothing is reachable: the snapshot has no root that leads to a block.</p></section>;
  const open = rows.find(({ name }) => name === heap.row);
  return (
    <div class={open ? "with-panel" : ""}>
      <section class="rows" aria-label="Tables">
        <div class="tools">
          <h2>Reachable by {table.by}</h2>
          <span class="tools-right">
            <label>rows <select aria-label="What a row of the snapshot is" value={table.by} onChange={(event) => changeHeap({ table: event.currentTarget.value, row: null })}>
              {snapshot.tables.map(({ by }) => <option value={by}>{by}</option>)}
            </select></label>
          </span>
        </div>
        <Rows table={table} rows={rows} snapshot={snapshot} />
      </section>
      {open && <RowPanel row={open} by={table.by} snapshot={snapshot} />}
    </div>
  );
}

function Rows({ table, rows, snapshot }: { table: HeapTable; rows: readonly HeapRow[]; snapshot: Snapshot }) {
  const heap = view.value.heap;
  const total = Math.max(1, snapshot.reachable.bytes);
  const hasOutside = table.rows.some((row) => row.outside_bytes > 0);
  const columns = COLUMNS.filter(([column]) => column !== "outside" || hasOutside);
  const others = table.other_first_reached;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Rows">
      <table>
        <thead><tr>
          {columns.map(([column, title]) => <SortHead column={column} title={title} />)}
          <th class="num wide-only" scope="col">blocks</th>
          <th scope="col">{table.by}</th>
        </tr></thead>
        <tbody>
          {rows.map((row) => {
            const open = row.name === heap.row;
            const name = visible(row.name);
            return (
              <tr aria-selected={open} onClick={() => changeHeap({ row: open ? null : row.name }, "within")}>
                {columns.map(([column, , value]) => <td class={`num${onWide(column)}`}>{bytes(value(row))}{column === "first" && <span class="share"> {percent(row.first_reached.bytes / total)}</span>}</td>)}
                <td class="num wide-only">{grouped(row.first_reached.blocks)}</td>
                <td class="name"><button type="button" class="plain" title={name}>{name}</button></td>
              </tr>
            );
          })}
        </tbody>
        {table.other_rows > 0 && (
          <tfoot><tr>
            {columns.map(([column]) => <td class={`num${onWide(column)}`}>{column === "first" && <>{bytes(others.bytes)}<span class="share"> {percent(others.bytes / total)}</span></>}</td>)}
            <td class="num wide-only">{grouped(others.blocks)}</td>
            <td class="name">{grouped(table.other_rows)} others</td>
          </tr></tfoot>
        )}
      </table>
    </div>
  );
}

function SortHead({ column, title }: { column: Column; title: string }) {
  const { sort } = view.value.heap;
  const order = sort === column ? "descending" : sort === `-${column}` ? "ascending" : undefined;
  return (
    <th class={`num${onWide(column)}`} scope="col" aria-sort={order}>
      <button type="button" class="plain sort" title={title} onClick={() => changeHeap({ sort: order === "descending" ? `-${column}` : column }, "within")}>
        {column}{order === "descending" ? " ▾" : order === "ascending" ? " ▴" : ""}
      </button>
    </th>
  );
}

/** Up and down move the open row. */
function useOpenRow(rows: readonly HeapRow[], open: string | null): void {
  // Keys may come faster than effects run.
  const latest = useRef({ rows, open });
  latest.current = { rows, open };
  useEffect(() => {
    const show = (row: HeapRow | undefined) => {
      if (!row) return;
      changeHeap({ row: row.name }, "within");
      requestAnimationFrame(() => document.querySelector('tr[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }));
    };
    return setActive({
      move(direction) {
        const { rows, open } = latest.current;
        if (direction === "left" || direction === "right") return;
        const at = rows.findIndex(({ name }) => name === open);
        show(rows[Math.min(rows.length - 1, Math.max(0, at + (direction === "down" ? 1 : -1)))]);
      },
      enter() {
        const { rows, open } = latest.current;
        if (open === null) show(rows[0]);
      },
    });
  }, []);
}
