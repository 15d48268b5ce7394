// The heat map as a table, for those who cannot see it: of each row what it has, and when most of it.

import type { HeatCells, HeatMap } from "../query/types";
import { SizeCells } from "../parts/numbers";
import { label, siteKey } from "../text/sites";
import { bytes, count, percent } from "../text/units";
import { view } from "../view/store";
import { intervalText } from "./times";

export function CellTable({ map }: { map: HeatMap }) {
  return (
    <details class="heat-table">
      <summary>as a table</summary>
      <div class="table-box" tabIndex={0} role="region" aria-label="The map as a table">
        <table>
          <thead><tr><th class="num" scope="col">size</th><th class="num" scope="col">error</th><th scope="col">most in</th><th class="num" scope="col">there</th><th scope="col">{view.value.by}</th></tr></thead>
          <tbody>
            {map.rows.map(({ site, ...cells }) => <Row key={siteKey(site)} map={map} cells={cells} name={label(site)} />)}
            {map.other_rows > 0 && <Row map={map} cells={map.others} name={count(map.other_rows, "other", "others")} />}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function Row({ map, cells, name }: { map: HeatMap; cells: HeatCells; name: string }) {
  const most = cells.bytes.reduce((best, size, column) => (size > cells.bytes[best]! ? column : best), 0);
  const [size, error] = [cells.bytes[most] ?? 0, cells.errors[most] ?? 0];
  return (
    <tr>
      <SizeCells size={cells.size} />
      <td class="num">{intervalText(map, most)}</td>
      <td class="num">{size > 0 ? `${bytes(size)} ± ${percent(error / size)}` : "no sample"}</td>
      <td class="name" title={name}>{name}</td>
    </tr>
  );
}
