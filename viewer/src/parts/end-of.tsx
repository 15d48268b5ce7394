// A name that may be cut off: at its beginning, since names of one module differ at their ends.

export function EndOf({ text }: { text: string }) {
  return <span class="end-of"><bdi dir="ltr">{text}</bdi></span>;
}
