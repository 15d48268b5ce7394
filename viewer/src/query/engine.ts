// The query in WASM, inside the worker. Its exports are plain functions over its memory
// (crates/page/src/wasm.rs): `alloc` gives room for the input of the next call, `result` the address of
// the last answer, whose length that call returned.

interface Exports {
  memory: WebAssembly.Memory;
  alloc(length: number): number;
  open(address: number, length: number): number;
  query(address: number, length: number): number;
  result(): number;
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

  const give = (input: Uint8Array): number => {
    const address = exports.alloc(input.length) >>> 0;
    new Uint8Array(exports.memory.buffer, address, input.length).set(input);
    return address;
  };
  const answer = (length: number): string =>
    decoder.decode(new Uint8Array(exports.memory.buffer, exports.result() >>> 0, length));

  return {
    open(archive) {
      const number = exports.open(give(archive), archive.length);
      // A negative number is the length of the message.
      return number >= 0 ? number : (JSON.parse(answer(-number)) as { error: string }).error;
    },
    query(request) {
      const input = encoder.encode(request);
      return answer(exports.query(give(input), input.length) >>> 0);
    },
  };
}
