// The head of a column by which the table can be sorted.

import type { SortedBy } from "../query/types";
import { change } from "../view/store";
import type { Sort } from "../view/view";

interface SortHeadProps {
  column: SortedBy;
  title: string;
  help: string;
  /** Classes of the cell. */
  look: string;
  order: "ascending" | "descending" | null;
}

/** Names begin with the first in the alphabet, numbers with the largest. */
function next(column: SortedBy, order: SortHeadProps["order"]): Sort {
  const isName = column === "name" || column === "more";
  const ascending = order === null ? isName : order === "descending";
  return ascending ? `-${column}` : column;
}

export function SortHead({ column, title, help, look, order }: SortHeadProps) {
  return (
    <th class={look} scope="col" aria-sort={order ?? undefined}>
      <button type="button" class="plain sort" title={help} onClick={() => change({ sort: next(column, order) }, "within")}>
        {title}{order === "descending" ? " ▾" : order === "ascending" ? " ▴" : ""}
      </button>
    </th>
  );
}
