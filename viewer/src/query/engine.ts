// The query in WASM, inside the worker. Its exports are plain functions over its memory
// (crates/page/src/wasm.rs): `alloc` gives room for the input of the next call, `result` and
// `result_length` the last answer.

interface Exports {
  memory: WebAssembly.Memory;
  alloc(length: number): number;
  open(): number;
  query(): number;
  result(): number;
  result_length(): number;
}

export interface Engine {
  /** The number of the trace, or what is wrong with the archive. */
  open(archive: Uint8Array): number | string;
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
  const answer = (): string =>
    decoder.decode(new Uint8Array(exports.memory.buffer, exports.result() >>> 0, exports.result_length() >>> 0));

  return {
    open(archive) {
      give(archive);
      const number = exports.open();
      return number >= 0 ? number : (JSON.parse(answer()) as { error: string }).error;
    },
    query(request) {
      give(encoder.encode(request));
      exports.query();
      return answer();
    },
  };
}
