// The messages of which nobody wants to see more in this session.

import { signal } from "@preact/signals";

const KEY = "heaptap-dismissed";

/** Storage may be denied to a page from a file: then it holds until the page is loaded again. */
function stored(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

const dismissed = signal(stored());

/** A message of a trace that grows is the same one with other numbers. */
const keyOf = (trace: string, text: string) => `${trace}\0${text.replace(/[\d.,]+/g, "#")}`.slice(0, 300);

export function isDismissed(trace: string, text: string): boolean {
  return dismissed.value.includes(keyOf(trace, text));
}

export function dismiss(trace: string, texts: readonly string[]): void {
  dismissed.value = [...new Set([...dismissed.value, ...texts.map((text) => keyOf(trace, text))])];
  try {
    sessionStorage.setItem(KEY, JSON.stringify(dismissed.value.slice(-100)));
  } catch {
    // It then holds for this page only.
  }
}
