// What the search for leaks has found, in one sentence. Why not all of a trace was read is long, and less than that it was not.

import type { Leaks } from "../query/types";
import { capital } from "../text/words";

export function VerdictText({ leaks: { verdict, incomplete } }: { leaks: Pick<Leaks, "verdict" | "incomplete"> }) {
  const text = capital(verdict);
  if (incomplete === null || !text.endsWith(`: ${incomplete}`)) return <>{text}</>;
  return <>{text.slice(0, -incomplete.length - 2)}<span class="why">: {incomplete}</span></>;
}
