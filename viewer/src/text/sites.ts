// Call sites: what they are called, which module they belong to, when two are the same.

import type { By, Site } from "../query/types";

/** Characters that would hide, break or turn around the text: as crates/report/src/escape.rs has them. */
const UNPRINTABLE = /[\p{Cc}\u00ad\u061c\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb\u00a0\u1680\u{e0000}-\u{e007f}]/gu;

/** The text with such characters written out. */
export function visible(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0)!;
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}

/** The name, and more about it, which may be empty: as `Site::parts` of the command line. */
export function parts(site: Site): [string, string] {
  const { line = 0, chars = [0, 0] } = site;
  const name = visible(site.name);
  const file = visible(site.file ?? "");
  if (line > 0) return [`${file}:${line}:${chars[0]}-${chars[1]}`, name];
  return name === "" ? [file || "(unknown)", ""] : [name, file];
}

/** The same on one line. */
export function label(site: Site): string {
  const [name, more] = parts(site);
  return more ? `${name} (${more})` : name;
}

/** A function with its line, since two lines of one function may leak: `Words.add_line:23`. */
export function headline({ name, file, line }: Site): string {
  const [shown] = parts({ name, ...(name === "" && file ? { file } : {}) });
  return line ? `${shown}:${line}` : shown;
}

export function sameSite(a: Site, b: Site): boolean {
  return siteKey(a) === siteKey(b);
}

/**
 * What tells a site from others. It is also the key of rows in lists that change while one looks at them, so that a row
 * that moves takes its state with it, and a click is never taken for one on the row that came to its place.
 */
export function siteKey(site: Site): string {
  return [site.name, site.file ?? "", site.line ?? 0, ...(site.chars ?? [0, 0])].join("\0");
}

/** What identifies a row, without its figures. */
export function siteOf({ name, file, line, chars }: Site): Site {
  return { name, ...(file ? { file } : {}), ...(line ? { line } : {}), ...(chars ? { chars } : {}) };
}

/** The site as a row of another grouping would name it. */
export function asBy(site: Site, by: By): Site {
  const { name, file } = site;
  switch (by) {
    case "function":
      return file ? { name, file } : { name };
    case "file":
      return { name: "", file: file ?? "" };
    case "module":
      return { name: moduleOf(site) };
    default:
      return site;
  }
}

/** The module of a call site, by the rule of crates/report/src/names.rs. */
export function moduleOf({ name, file = "" }: Site): string {
  const plain = name.split(/[<(]/, 1)[0] ?? name;
  const colons = plain.lastIndexOf("::");
  if (colons >= 0) return plain.slice(0, colons);
  const modules: string[] = [];
  for (const part of shown(plain).split(".")) {
    if (!/^[A-Z]/.test(part)) break;
    modules.push(part);
  }
  return modules.length > 0 ? modules.join(".") : file;
}

/** `Stdlib.Map.Make.bal` of OCaml's `Stdlib__Map.Make.bal`; any other name as it is. */
function shown(definition: string): string {
  const dot = definition.indexOf(".");
  const end = dot < 0 ? definition.length : dot;
  const unit = definition.slice(0, end);
  if (!/^[A-Z]/.test(unit) || !unit.includes("__")) return definition;
  const capital = (part: string) => part.slice(0, 1).toUpperCase() + part.slice(1);
  return unit.split("__").filter(Boolean).map(capital).join(".") + definition.slice(end);
}

/** A regular expression that matches this text alone. */
export function literally(text: string): string {
  return `^${text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;
}

/** A file name that fits: its last parts. */
export function shortFile(file: string, most = 40): string {
  return file.length <= most ? file : `…${file.slice(file.length - most + 1)}`;
}
