// Files that the page makes of what it shows. They never leave the machine: the browser saves them.

import { config, view } from "../view/store";

/** Saves a file. */
export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  const address = URL.createObjectURL(content);
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function saveText(name: string, type: string, text: string): void {
  save(name, new Blob([text], { type }));
}

/** A name after the trace in view: `words-table.csv`. Hosts and programs choose the names of traces. */
export function fileName(what: string, extension: string): string {
  const trace = config.traces[view.value.trace]?.name ?? "heaptap";
  const plain = trace.replace(/^.*[/\\]/, "").replace(/\.ctf(\.gz|\.zst)?$/, "").replace(/[^\w.-]+/g, "_").slice(0, 80);
  return `${plain || "heaptap"}-${what}.${extension}`;
}

/** Copies a text. Pages from files may be denied the clipboard; then the older way. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}
