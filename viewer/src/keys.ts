// The keyboard. Keys act on the page unless something that takes text or has its own keys holds
// the focus.

import { addOpen } from "./parts/chip-bar";
import { nextMetric, toggleSites } from "./parts/head";
import { helpOpen } from "./parts/help";
import { ROW_FILTER } from "./parts/row-filter";
import { factsOpen } from "./parts/trace-facts";
import { active, type Direction } from "./view/commands";
import { current, togglePause } from "./view/live";
import { stepOut } from "./view/drill";
import { change, changeHeap, config, tabs, view } from "./view/store";
import { middleOfBrush, panBy, showWholeRun, zoomAbout } from "./view/zoom";
import { toggleTheme } from "./view/theme";
import { TABS } from "./view/view";

const MOVES: Record<string, Direction> = {
  ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", h: "left", l: "right", k: "up", j: "down",
};

const focusElement = (id: string) => document.getElementById(id)?.focus();

/** Where text is looked for: in the tree, and in the rows of the table. */
const FIELDS = ["search", ROW_FILTER];

/** Shows again what a search or a filter of rows left out; false if there is neither. */
function clearSearch(): boolean {
  const { search, find, tab } = view.value;
  if (tab === "table" ? find === "" : search === "") return false;
  change(tab === "table" ? { find: "" } : { search: "" }, "within");
  return true;
}

const ACTIONS: Record<string, () => void> = {
  Backspace: stepOut,
  "/": () => {
    const field = FIELDS.find((id) => document.getElementById(id) !== null);
    if (field) focusElement(field);
    else {
      if (view.value.tab === "snapshots") changeHeap({ part: "tree" });
      else change({ tab: "flame" });
      requestAnimationFrame(() => focusElement("search"));
    }
  },
  n: () => active()?.next?.(1),
  N: () => active()?.next?.(-1),
  i: () => change({ invert: !view.value.invert, focus: [], selected: [] }),
  m: nextMetric,
  "[": () => focusElement("brush-start"),
  "]": () => focusElement("brush-end"),
  p: () => change({ metric: "peak" }),
  c: () => document.getElementById("copy-link")?.click(),
  d: toggleTheme,
  f: () => { addOpen.value = true; },
  o: toggleSites,
  t: () => { if (config.traces.length > 0) factsOpen.value = true; },
  "?": () => { helpOpen.value = true; },
  " ": togglePause,
  "+": () => zoomAbout(1 / 2, middleOfBrush()),
  "=": () => zoomAbout(1 / 2, middleOfBrush()),
  "-": () => zoomAbout(2, middleOfBrush()),
  "0": showWholeRun,
  ",": () => panBy(-1 / 4),
  ".": () => panBy(1 / 4),
};

/** Those that are about the trace, which Snapshots does not show. */
const OF_TRACE = ["i", "m", "[", "]", "p", "f", "o", "+", "=", "-", "0", ",", "."];

/** Whether the element uses keys like these itself. */
function takesKeys(element: Element | null, key: string): boolean {
  if (!element) return false;
  const name = element.tagName;
  if (name === "TEXTAREA" || name === "SELECT" || (name === "INPUT" && (element as HTMLInputElement).type !== "button")) return true;
  if (element.closest("dialog[open]")) return true;
  return (name === "BUTTON" || name === "A") && (key === "Enter" || key === " ");
}

export function followKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const element = document.activeElement;
    if (element instanceof HTMLInputElement && FIELDS.includes(element.id) && (event.key === "Enter" || event.key === "Escape")) {
      if (event.key === "Escape") clearSearch();
      else if (element.id === "search") active()?.next?.(1);
      element.blur();
      event.preventDefault();
      return;
    }
    if (takesKeys(element, event.key)) return;
    const move = MOVES[event.key];
    const tab = /^\d$/.test(event.key) ? TABS[Number(event.key) - 1] : undefined;
    // A complete trace leaves the key to the browser, which scrolls.
    const applies = Object.hasOwn(ACTIONS, event.key) && (event.key !== " " || current.value !== null) && !(view.value.tab === "snapshots" && OF_TRACE.includes(event.key));
    const action = applies ? ACTIONS[event.key] : undefined;
    if (move) active()?.move(move);
    else if (event.key === "Enter") active()?.enter();
    else if (tab && tabs.includes(tab)) change({ tab });
    else if (event.key === "Escape" && clearSearch()) event.preventDefault();
    else if (action) action();
    else return;
    event.preventDefault();
  });
}
