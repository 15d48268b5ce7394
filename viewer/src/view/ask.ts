// Asks the query whenever what a part of the page depends on changes, or the trace has grown, and keeps the last answer
// until the next one is there or turns out not to be had, so that nothing flickers.

import { useEffect, useState } from "preact/hooks";
import type { Answer, Ask, Kind } from "../query/types";
import { isThinned } from "./exact";
import { client, exact, exactFailed, revision } from "./store";

export interface Asked<K extends Kind> {
  answer: Answer<K> | null;
  error: string | null;
  /** Whether the answer is that of an older request. */
  stale: boolean;
}

/** The answer in this slot; without a request, nothing. */
export function useQuery<K extends Kind>(slot: string, kind: K, request: Ask<K> | null): Asked<K> {
  const [state, setState] = useState<{ answer: Answer<K> | null; error: string | null; of: string }>({ answer: null, error: null, of: "" });
  const useServer = exact.value && request !== null && isThinned(request);
  const key = request === null ? "" : `${useServer}${JSON.stringify(request)}`;
  useEffect(() => {
    if (request === null) return;
    client.ask(
      slot,
      kind,
      request,
      (outcome) => {
        if (useServer) exactFailed.value = "error" in outcome;
        if ("error" in outcome && typeof outcome.error === "string") {
          // The last answer is about something else: beside the error it would be taken for this one.
          setState({ answer: null, error: outcome.error, of: key });
        } else setState({ answer: outcome as Answer<K>, error: null, of: key });
      },
      useServer,
    );
  }, [key, slot, revision.value]);
  useEffect(() => () => client.forget(slot), [slot]);
  return { answer: request === null ? null : state.answer, error: state.error, stale: request !== null && state.of !== key };
}
