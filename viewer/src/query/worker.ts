// The worker: unpacks the query and the traces, and answers one request after the other.
// Its code travels in the page as a string and starts from a Blob.

import { startEngine, type Engine } from "./engine";
import { unpacked } from "./packed";
import type { FromWorker, ToWorker } from "./protocol";

const post = (message: FromWorker) => (self as unknown as Worker).postMessage(message);

let engine: Promise<Engine> | undefined;
/** The engine numbers traces in the order in which they open; the page as the command line names them. */
const numbers = new Map<number, number>();

/** The request with the engine's numbers of traces. */
function renumbered(request: string): string {
  const fields = JSON.parse(request) as Record<string, unknown>;
  for (const field of ["trace", "before", "after"]) {
    const number = fields[field];
    if (typeof number === "number") fields[field] = numbers.get(number) ?? number;
  }
  return JSON.stringify(fields);
}

async function receive(message: ToWorker): Promise<void> {
  switch (message.kind) {
    case "start":
      engine = unpacked(message.wasm).then(startEngine);
      await engine;
      post({ kind: "started" });
      break;
    case "open": {
      const opened = (await engine)!.open(await unpacked(message.archive), numbers.get(message.trace));
      if (typeof opened === "number") numbers.set(message.trace, opened);
      post({ kind: "opened", trace: message.trace, ...(typeof opened === "string" ? { error: opened } : {}) });
      break;
    }
    case "query":
      post({ kind: "answer", id: message.id, answer: (await engine)!.query(renumbered(message.request)) });
      break;
  }
}

let last: Promise<void> = Promise.resolve();
self.onmessage = (event: MessageEvent<ToWorker>) => {
  last = last.then(() => receive(event.data)).catch((reason: unknown) => {
    post({ kind: "broken", message: reason instanceof Error ? reason.message : String(reason) });
  });
};
