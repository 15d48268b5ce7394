#!/usr/bin/env node
// Builds the page into one file: esbuild bundles the worker, puts its code into the page's bundle as
// a string, and script and style go into src/page.html with their hashes in its
// Content-Security-Policy. The output depends on nothing but the sources and package-lock.json.
//
//   viewer/build             types are checked, and viewer/built/page.html is written
//   viewer/build --check     built again and compared with what is committed
//   viewer/build --out FILE  written elsewhere

import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const called = process.cwd();
process.chdir(here);
const esbuild = await import("esbuild");

const COMMON = {
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
  target: ["chrome111", "firefox113", "safari16.4"],
  legalComments: "none",
  logLevel: "warning",
  absWorkingDir: here,
};

async function bundle(options) {
  const { outputFiles } = await esbuild.build({ ...COMMON, ...options });
  return outputFiles[0].text.trim();
}

/** Code inside a script element must not end it, nor open a comment there. */
const inScript = (code) => code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const hash = (text) => createHash("sha256").update(text).digest("base64");

async function page() {
  const worker = await bundle({ entryPoints: ["src/query/worker.ts"], format: "iife" });
  const script = inScript(await bundle({
    entryPoints: ["src/main.tsx"],
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { WORKER_CODE: JSON.stringify(worker) },
  }));
  const style = await bundle({ entryPoints: ["src/style/page.css"] });
  const parts = { SCRIPT_HASH: hash(script), STYLE_HASH: hash(style), STYLE: style, SCRIPT: script };
  const template = readFileSync("src/page.html", "utf8");
  // A function, so that `$` in the code stays what it is.
  const text = template.replace(/SCRIPT_HASH|STYLE_HASH|\bSTYLE\b|\bSCRIPT\b/g, (name) => parts[name]);
  return { text, weight: gzipSync(script, { level: 9 }).length + gzipSync(style, { level: 9 }).length };
}

const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);

try {
  execFileSync(process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.json"], { stdio: "inherit" });
} catch {
  // tsc has said what is wrong.
  process.exit(1);
}
const { text, weight } = await page();
const kib = (weight / 1000).toFixed(1);
if (args.includes("--check")) {
  if (readFileSync("built/page.html", "utf8") !== text) {
    console.error("viewer/built/page.html is not what viewer/src makes: run `make viewer` and commit it");
    process.exit(1);
  }
  console.log(`viewer: built/page.html is what src makes; script and style ${kib} KB gzipped`);
} else {
  const out = option("--out") ? resolve(called, option("--out")) : "built/page.html";
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, text);
  console.log(`viewer: wrote ${option("--out") ?? "built/page.html"}; script and style ${kib} KB gzipped`);
}
