// The tree that assistive technology sees: the focused path, the selected cell with its siblings,
// and its children. It takes the keyboard's focus in place of the canvas.

import type { Site } from "../query/types";
import { label } from "../text/sites";
import type { Layout } from "./layout";

/** More than this many siblings are not read out one by one. */
const MOST = 40;

interface Props {
  layout: Layout;
  /** What is said about a cell beside its name. */
  detail(cell: number): string;
  focus: readonly Site[];
  selected: number;
  onSelect(cell: number): void;
  onFocus(cell: number): void;
}

export function AriaTree({ layout, detail, focus, selected, onSelect, onFocus }: Props) {
  const path: number[] = [];
  for (let at = layout.parent(selected); at >= 0; at = layout.parent(at)) path.unshift(at);
  const above = layout.parent(selected);
  const siblings = above < 0 ? [selected] : around(layout.children(above), selected);
  const describe = (cell: number) => `${layout.fullName(cell)}, ${detail(cell)}`;
  const item = (cell: number) => (
    <div
      role="treeitem"
      id={`cell-${cell}`}
      key={`cell-${cell}`}
      aria-level={focus.length + layout.depth[cell]! + 1}
      aria-selected={cell === selected}
      {...(layout.firstChild[cell]! >= 0 ? { "aria-expanded": cell === selected || path.includes(cell) } : {})}
      onClick={() => (cell === selected ? onFocus(cell) : onSelect(cell))}
    >
      {describe(cell)}
    </div>
  );
  return (
    <div class="aria-tree" role="tree" tabIndex={0} aria-label={layout.words.tree} aria-activedescendant={`cell-${selected}`}>
      {focus.map((site, at) => (
        <div role="treeitem" key={`above-${at}`} aria-level={at + 1} aria-selected={false} aria-expanded={true}>{label(site)}</div>
      ))}
      {path.map(item)}
      {siblings.flatMap((cell) => (cell === selected ? [item(cell), ...layout.children(cell).slice(0, MOST).map(item)] : [item(cell)]))}
    </div>
  );
}

/** The siblings next to the selected one. */
function around(cells: number[], selected: number): number[] {
  const at = cells.indexOf(selected);
  const from = Math.max(0, Math.min(at - MOST / 2, cells.length - MOST));
  return cells.slice(from, from + MOST);
}
