// What an icicle says of a cell: below the pointer, under the picture, and to assistive technology.

import { parts } from "../text/sites";
import { count, grouped, percent } from "../text/units";
import type { IcicleProps } from "./icicle";
import { cellText, selfText, sizeText, type Layout } from "./layout";

/** How much a search finds, if the widths say so. */
export function foundSize(layout: Layout, size: number, { more, measure }: IcicleProps): string {
  if (more && !measure) return "";
  return ` with ${measure?.(size) ?? sizeText(layout, size)}, ${percent(size / (layout.total || 1))}`;
}

/** What is said about a cell. */
export function detail(layout: Layout, cell: number, more: IcicleProps["more"] | undefined): string[] {
  const samples = layout.width[cell]!;
  const { self: selves, errors } = layout.tree.cells;
  const self = selves[cell]!;
  // Of several rates, a count is no number of samples.
  const basis = errors ? "" : ` · ${count(samples, "sample", "samples")}`;
  return more?.(layout, cell) ?? [
    `${cellText(layout, cell)} · ${percent(samples / (layout.tree.total.samples || 1))} of the total${basis}`,
    ...(self > 0 && layout.firstChild[cell]! >= 0 ? [`itself ${selfText(layout, cell)}`] : []),
  ];
}

export function Tip({ tip, layout, width, more }: { tip: { cell: number; x: number; y: number } | null; layout: Layout; width: number; more: IcicleProps["more"] | undefined }) {
  if (!tip || tip.cell >= layout.count) return null;
  const { cell } = tip;
  const right = tip.x > width / 2;
  const lines = detail(layout, cell, more);
  const site = layout.site(cell);
  return (
    <div class="tip" style={{ [right ? "right" : "left"]: `${right ? width - tip.x + 12 : tip.x + 12}px`, top: `${tip.y + 16}px` }}>
      <b>{layout.name(cell)}</b>
      {!layout.isJoined(cell) && site.file && !site.line ? <span class="faint">{parts(site)[1]}</span> : null}
      {lines.map((line) => <span>{line}</span>)}
      {layout.isJoined(cell) && cell > 0 ? <span class="faint">{`each too small to show: ${grouped(layout.tree.cells.count[cell] ?? 0)} joined into one`}</span> : null}
    </div>
  );
}
