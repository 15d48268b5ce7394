// Light and dark: by the preference of the system, or by hand.

import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEY = "heaptap-theme";

/** Storage may be denied to a page from a file. */
function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

const preferred = matchMedia("(prefers-color-scheme: dark)");
const chosen = signal<Theme>(stored());
/** What is shown: everything that paints reads it. */
export const dark = signal(false);

function apply(): void {
  dark.value = chosen.value === "auto" ? preferred.matches : chosen.value === "dark";
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
}

export function followTheme(): void {
  preferred.addEventListener("change", apply);
  apply();
}

/** The other one, and back to the system's when that is the same. */
export function toggleTheme(): void {
  const next: Theme = dark.value ? "light" : "dark";
  chosen.value = (next === "dark") === preferred.matches ? "auto" : next;
  try {
    if (chosen.value === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen.value);
  } catch {
    // It then holds for this page only.
  }
  apply();
}
