// Sizes in the page: always with their error, in columns that align.

import type { BlockCount, Size } from "../query/types";
import { bytes, number, percent, sized, sizeColumns } from "../text/units";

/** `137.7 MiB ± 0.74 %`, with its interval as a title. */
export function Sized({ size }: { size: Size }) {
  return <span class="sized" title={`95 %: ${bytes(size.low)} to ${bytes(size.high)}`}>{sized(size)}</span>;
}

/** The two cells of a size in a table. `errorLook`: classes of the second. */
export function SizeCells({ size, errorLook = "" }: { size: Size; errorLook?: string }) {
  const [value, error] = sizeColumns(size);
  return (
    <>
      <td class="num" title={`95 %: ${bytes(size.low)} to ${bytes(size.high)}`}>{value}</td>
      <td class={`num err ${errorLook}`}>{error}</td>
    </>
  );
}

/** `12,345 ± 1.2 %`. */
export function blocksText({ count, error }: BlockCount): string {
  return `${number(count)} ± ${percent(count > 0 ? error / count : 0)}`;
}

/** A bar with its 95 % interval, on the scale of the largest. */
export function ErrorBar({ size, most }: { size: Size; most: number }) {
  const share = (value: number) => Math.min(100, (100 * value) / Math.max(most, 1));
  return (
    <svg class="error-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect x="0" y="2" width={share(size.bytes)} height="6" class="chart-bar" />
      <line x1={share(size.low)} x2={share(size.high)} y1="5" y2="5" class="error-line" vector-effect="non-scaling-stroke" />
    </svg>
  );
}
