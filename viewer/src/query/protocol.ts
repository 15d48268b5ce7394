// Messages between the page and its worker.

/** gzip'd bytes, or the base64 of them that the page holds. */
export type Packed = string | ArrayBuffer;

export type ToWorker =
  | { kind: "start"; wasm: Packed }
  | { kind: "open"; trace: number; archive: Packed }
  | { kind: "query"; id: number; request: string };

export type FromWorker =
  | { kind: "started" }
  | { kind: "opened"; trace: number; error?: string }
  | { kind: "answer"; id: number; answer: string }
  /** The query trapped, and this worker is of no more use. */
  | { kind: "broken"; message: string };
