// The query in WASM, inside the worker. Its exports are plain functions over its memory
// (crates/query/src/wasm.rs): `alloc` gives room for the input of the next call, `result` the address of
// the last answer, whose length that call returned.

interface Exports {
  memory: WebAssembly.Memory;
  alloc(length: number): number;
  open(): number;
  reopen(trace: number): number;
  query(): number;
  result(): number;
}

export interface Engine {
  /** The number of the trace, or what is wrong with the archive. It takes the place of an open one, if that is given. */
  open(archive: Uint8Array, trace?: number): number | string;
  /** The answer as JSON. */
  query(request: string): string;
}

export async function startEngine(wasm: Uint8Array<ArrayBuffer>): Promise<Engine> {
  const { instance } = await WebAssembly.instantiate(wasm, {});
  const exports = instance.exports as unknown as Exports;
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();

  const give = (input: Uint8Array): void => {
    const address = exports.alloc(input.length) >>> 0;
    new Uint8Array(exports.memory.buffer, address, input.length).set(input);
  };
  const answer = (length: number): string =>
    decoder.decode(new Uint8Array(exports.memory.buffer, exports.result() >>> 0, length));

  return {
    open(archive, trace) {
      give(archive);
      const number = trace === undefined ? exports.open() : exports.reopen(trace);
      // A negative number is the length of the message.
      return number >= 0 ? number : (JSON.parse(answer(-number)) as { error: string }).error;
    },
    query(request) {
      give(encoder.encode(request));
      return answer(exports.query() >>> 0);
    },
  };
}
