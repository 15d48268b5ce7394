// Data as the page carries it: compressed, and in base64 if it is in the page itself.

import type { Packed } from "./protocol";

export async function unpacked(packed: Packed): Promise<Uint8Array<ArrayBuffer>> {
  const zipped = typeof packed === "string" ? fromBase64(packed) : new Uint8Array(packed);
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (const reader = stream.getReader(); ; ) {
    const { value, done } = await reader.read();
    if (done) break;
    chunks.push(value);
    length += value.length;
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
