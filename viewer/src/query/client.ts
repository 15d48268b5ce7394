// Asks the worker, one request at a time. Each place of the page that shows an answer has a slot;
// of the requests that wait in a slot only the latest is kept, so that a brush that moves faster
// than the query answers never builds a queue. An answer that arrives while a newer request waits
// is still shown: it is newer than the picture that stands. Some slots come last: nothing waits for
// their answers, and none is begun while a gesture goes on.

import { signal } from "@preact/signals";
import { embeddedQuery, fetchExact } from "./page-data";
import type { FromWorker, Packed, ToWorker } from "./protocol";
import type { Answer, Ask, Kind } from "./types";

/** The code of worker.ts, which the build puts here. */
declare const WORKER_CODE: string;

export type Outcome<K extends Kind> = Answer<K> | { error: string };

/** Slots that are asked when no other waits. */
const LAST = new Set(["verdict"]);

/** Milliseconds in which a gesture that pauses does not go on. */
const PAUSE = 200;

interface Request {
  text: string;
  deliver(outcome: unknown): void;
}

export class Client {
  private worker: Worker | undefined;
  private readonly waiting = new Map<string, Request>();
  private running: { id: number; request: Request } | undefined;
  private lastId = 0;
  /** Ends the gesture that the last slots wait for. */
  private held: number | undefined;
  private readonly archives = new Map<number, () => Packed>();
  private readonly opening = new Map<number, (error: string | undefined) => void>();
  private restarts = 0;
  private stopped: string | undefined;
  private readonly exactWaiting = new Map<string, Request>();
  private exactRunning: { slot: string; abort: AbortController } | undefined;
  /** Whether an answer is awaited. */
  readonly busy = signal(false);
  /** Whether one is awaited from the server. */
  readonly asksServer = signal(false);

  /** `onRestart` hears that the query trapped and was started again. */
  constructor(private readonly onRestart: (message: string) => void) {}

  /** Opens a trace, or what it has grown to; the promise holds what is wrong with it, if anything. */
  open(trace: number, archive: () => Packed): Promise<string | undefined> {
    this.archives.set(trace, archive);
    const opened = new Promise<string | undefined>((resolve) => this.opening.set(trace, resolve));
    if (this.worker) this.post({ kind: "open", trace, archive: archive() });
    else this.start();
    return opened;
  }

  /** Asks in a slot; what waited there is dropped. */
  ask<K extends Kind>(slot: string, kind: K, request: Ask<K>, deliver: (outcome: Outcome<K>) => void, exact = false): void {
    const text = JSON.stringify({ q: kind, ...request });
    const asked = { text, deliver: deliver as (outcome: unknown) => void };
    this.forgetExact(slot);
    if (exact) {
      this.waiting.delete(slot);
      this.exactWaiting.set(slot, asked);
      void this.nextExact();
      return;
    }
    this.waiting.set(slot, asked);
    this.next();
  }

  /** Starts the query before the first trace is there. */
  prepare(): void {
    if (!this.worker) this.start();
  }

  /** While a gesture goes on, the slots that come last wait until it ends or pauses. */
  hold(held: boolean): void {
    clearTimeout(this.held);
    this.held = held ? (setTimeout(() => this.hold(false), PAUSE) as unknown as number) : undefined;
    if (!held) this.next();
  }

  /** Whether a gesture goes on. */
  get inGesture(): boolean {
    return this.held !== undefined;
  }

  /** What waits in the slot is no longer wanted. */
  forget(slot: string): void {
    this.waiting.delete(slot);
    this.forgetExact(slot);
    this.note();
  }

  /** The server stops a reading when its request is aborted. */
  private forgetExact(slot: string): void {
    this.exactWaiting.delete(slot);
    if (this.exactRunning?.slot === slot) this.exactRunning.abort.abort();
  }

  /** One request at a time: most want the same reading, and a browser has few connections. */
  private async nextExact(): Promise<void> {
    const first = this.exactWaiting.entries().next();
    if (this.exactRunning || first.done) {
      this.note();
      return;
    }
    const [slot, request] = first.value;
    const abort = new AbortController();
    this.exactWaiting.delete(slot);
    this.exactRunning = { slot, abort };
    this.note();
    let outcome: unknown;
    try {
      outcome = JSON.parse(await fetchExact(request.text, abort.signal));
    } catch (reason) {
      outcome = { error: reason instanceof Error ? reason.message : String(reason) };
    }
    this.exactRunning = undefined;
    if (!abort.signal.aborted) request.deliver(outcome);
    void this.nextExact();
  }

  private note(): void {
    this.asksServer.value = this.exactRunning !== undefined || this.exactWaiting.size > 0;
    this.busy.value = this.running !== undefined || this.waiting.size > 0 || this.asksServer.value;
  }

  private start(): void {
    const code = URL.createObjectURL(new Blob([WORKER_CODE], { type: "text/javascript" }));
    const worker = new Worker(code);
    URL.revokeObjectURL(code);
    worker.onmessage = (event: MessageEvent<FromWorker>) => {
      if (worker === this.worker) this.receive(event.data);
    };
    worker.onerror = (event) => {
      if (worker === this.worker) this.broken(event.message);
    };
    this.worker = worker;
    this.post({ kind: "start", wasm: embeddedQuery() });
    for (const [trace, archive] of this.archives) this.post({ kind: "open", trace, archive: archive() });
    this.next();
  }

  private post(message: ToWorker): void {
    this.worker?.postMessage(message);
  }

  private next(): void {
    this.startNext();
    this.note();
  }

  private startNext(): void {
    if (this.running || !this.worker) return;
    const slots = [...this.waiting.keys()];
    const slot = slots.find((each) => !LAST.has(each)) ?? (this.held === undefined ? slots[0] : undefined);
    const request = slot === undefined ? undefined : this.waiting.get(slot);
    if (slot === undefined || request === undefined) return;
    this.waiting.delete(slot);
    if (this.stopped) {
      request.deliver({ error: this.stopped });
      return;
    }
    this.running = { id: ++this.lastId, request };
    this.post({ kind: "query", id: this.lastId, request: request.text });
  }

  private receive(message: FromWorker): void {
    switch (message.kind) {
      case "started":
        break;
      case "opened":
        this.opening.get(message.trace)?.(message.error);
        this.opening.delete(message.trace);
        break;
      case "answer": {
        const running = this.running;
        this.running = undefined;
        if (running?.id === message.id) running.request.deliver(JSON.parse(message.answer));
        this.next();
        break;
      }
      case "broken":
        this.broken(message.message);
        break;
    }
  }

  /** Starts the query again; one that traps time and again is left stopped. */
  private broken(message: string): void {
    this.worker?.terminate();
    this.worker = undefined;
    const running = this.running;
    this.running = undefined;
    const told = `the query stopped (${message}); please report this with the trace, or its anonymised form (heaptap anonymise)`;
    running?.request.deliver({ error: told });
    this.restarts += 1;
    if (this.restarts > 5) this.stopped = told;
    for (const resolve of this.opening.values()) resolve(told);
    this.opening.clear();
    if (this.stopped === undefined && running) {
      this.onRestart(told);
      this.start();
    }
  }
}
