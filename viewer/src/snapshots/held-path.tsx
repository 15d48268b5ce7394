// A path from a holder down to a block, one step on each line.

import { visible } from "../text/sites";

/** Of a long path, so many steps at its beginning and its end are shown. */
const FIRST = 12;
const LAST = 12;

/** `heading`: one level below what it belongs to. */
export function HeldPath({ title, heading: Heading, steps }: { title: string; heading: "h3" | "h4"; steps: readonly string[] }) {
  if (steps.length === 0) return null;
  const cut = steps.length - FIRST - LAST;
  const shown = cut > 1 ? [...steps.slice(0, FIRST), null, ...steps.slice(-LAST)] : steps;
  return (
    <div class="held-path">
      <Heading>{title}</Heading>
      <ol>{shown.map((step) => (step === null ? <li class="faint">{cut} more steps</li> : <li class="break">{visible(step)}</li>))}</ol>
    </div>
  );
}
