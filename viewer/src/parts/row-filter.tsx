// The text that the rows of a table contain. `/` goes to it, Escape clears it.

import { change, view } from "../view/store";

export const ROW_FILTER = "row-filter";

export function RowFilter() {
  return (
    <input
      id={ROW_FILTER}
      type="search"
      placeholder="rows with  /"
      aria-label="Only rows that contain"
      spellcheck={false}
      value={view.value.find}
      onInput={(event) => change({ find: event.currentTarget.value }, "search")}
    />
  );
}
