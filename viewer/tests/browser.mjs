// What the browser tests share: traces, pages that `heaptap export --to html` writes of them, and
// Debian's Chromium. Each page that a test opens is watched: a console error, an uncaught exception
// or a request that leaves the page fails the test.
//
//   HEAPTAP      the program, target/release/heaptap by default
//   TRACES       the program of crates/cli/examples/viewer_traces
//   CHROMIUM     /usr/bin/chromium by default
//   SCREENSHOTS  where pictures are kept, target/viewer-screenshots by default

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const run = promisify(execFile);
export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const target = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
const heaptap = process.env.HEAPTAP ?? join(target, "release/heaptap");
const traceWriter = process.env.TRACES ?? join(target, "debug/examples/viewer_traces");
const screenshots = process.env.SCREENSHOTS ?? join(target, "viewer-screenshots");

const work = mkdtempSync(join(tmpdir(), "heaptap-viewer-"));
process.on("exit", () => rmSync(work, { recursive: true, force: true }));

let written;
/** The path of a trace or a snapshot: one that viewer_traces writes, or one in the repository. */
export async function trace(name) {
  if (name.includes("/")) return resolve(root, name);
  written ??= run(traceWriter, [work]);
  await written;
  return join(work, name);
}

let rare;
/** A trace of which nearly every block has a call path of its own, which only some tests need. */
export async function rarePaths() {
  rare ??= run(traceWriter, [work, "rare-paths.ctf"]);
  await rare;
  return join(work, "rare-paths.ctf");
}

/** A trace with these bytes. */
export function traceOf(name, bytes) {
  const path = join(work, name);
  writeFileSync(path, bytes);
  return path;
}

/** A directory for this run. */
export function directory(name) {
  const path = join(work, name);
  mkdirSync(path, { recursive: true });
  return path;
}

const pages = new Map();
/** The address of a page that `heaptap export` writes; each is written once. */
export const exported = (...names) => exportedWith([], ...names);

/** The same with options. */
export function exportedWith(options, ...names) {
  const key = [...options, ...names].join();
  if (!pages.has(key)) {
    pages.set(key, (async () => {
      const traces = await Promise.all(names.map((name) => (name.startsWith(work) ? name : trace(name))));
      const page = join(work, `${pages.size}.html`);
      // A damaged trace or snapshot makes a page and a status other than 0.
      await run(heaptap, ["export", ...traces, ...options, "--to", "html", "-o", page]).catch((reason) => {
        if (!existsSync(page)) throw reason;
      });
      return pathToFileURL(page).href;
    })());
  }
  return pages.get(key);
}

/** Runs a program in a directory; `heaptap` is the one of the tests. */
export async function runIn(cwd, program, ...args) {
  return run(program === "heaptap" ? resolve(heaptap) : program, args, { cwd });
}

/** What the command line prints. Of a defective trace the status is 1, and it is what could be read. */
export async function printed(...args) {
  const { stdout } = await run(heaptap, args, { maxBuffer: 1 << 28 }).catch((reason) => {
    if (reason.code === 1) return reason;
    throw reason;
  });
  return stdout;
}

/** The same as an object. */
export const json = async (...args) => JSON.parse(await printed(...args));

const UNITS = ["bytes", "KiB", "MiB", "GiB"];
/** As crates/cli/src/text/units.rs writes it. */
export function bytesText(count) {
  let [value, unit] = [count, 0];
  while (value >= 1024) [value, unit] = [value / 1024, unit + 1];
  return `${value.toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit]}`;
}

export function percentText(share) {
  return share === 0 ? "0 %" : `${(100 * share).toFixed(100 * share < 0.995 ? 2 : 1)} %`;
}

/** A size with its error. */
export function sized({ bytes, error }) {
  return `${bytesText(bytes)} ± ${percentText(bytes > 0 ? error / bytes : 0)}`;
}

let browser;
async function launched() {
  browser ??= chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  return browser;
}

export async function closeBrowser() {
  await (await browser)?.close();
}

/** Opens a page, calls the body, and checks that nothing went wrong behind it but what is expected. */
export async function withPage(address, options, body) {
  const { width = 1280, height = 860, theme = "light", fragment = "", requests = "none", expected = null, before = null, ...more } = options;
  const context = await (await launched()).newContext({ viewport: { width, height }, colorScheme: theme, ...more });
  try {
    const page = await context.newPage();
    const wrong = [];
    page.on("console", (message) => {
      if (expected?.test(message.text())) return;
      if (message.type() === "error" || message.type() === "warning") wrong.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => wrong.push(`exception: ${error.stack ?? error.message}`));
    page.on("request", (request) => {
      const url = request.url();
      const own = url.split("#")[0] === address.split("#")[0] || url.startsWith("blob:") || url.startsWith("data:");
      const toServer = requests === "own" && new URL(url).origin === new URL(address).origin;
      if (!own && !toServer) wrong.push(`request: ${url}`);
    });
    page.setDefaultTimeout(20_000);
    await before?.(page);
    await page.goto(address + fragment);
    await settled(page);
    await body(page, context);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

/** Waits until every answer is there and painted: an answer may lead to the next request. */
export async function settled(page) {
  await page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    for (let quiet = 0, frames = 0; quiet < 6; frames++) {
      if (frames > 2400) throw new Error("the page stays busy");
      await frame();
      quiet = document.querySelector("main")?.getAttribute("aria-busy") === "false" ? quiet + 1 : 0;
    }
  });
}

export async function picture(page, name) {
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

export const fragment = (page) => page.evaluate(() => location.hash);

/** The names and sizes that the tree of the icicle holds for assistive technology. */
export async function treeItems(page) {
  return page.locator('[role="treeitem"]').allTextContents();
}

/** Runs `heaptap serve`: the address that it prints, and how to stop it. `input`: its standard input. */
export async function startServer(args, input = "ignore") {
  const child = spawn(heaptap, ["serve", "--no-open", ...args], { stdio: [input, "pipe", "pipe"] });
  const ended = new Promise((end) => child.on("exit", end));
  const address = await new Promise((found, failed) => {
    let said = "";
    const hear = (text) => {
      said += text;
      const match = /http:\/\/\S+/.exec(said);
      if (match) found(match[0]);
    };
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    child.on("exit", (code) => failed(new Error(`heaptap serve ended with ${code}: ${said}`)));
  });
  const stop = () => {
    child.kill("SIGINT");
    return ended;
  };
  return { address, stop };
}

/** Runs `heaptap serve` and passes the address that it prints. */
export async function serve(args, body) {
  const { address, stop } = await startServer(args);
  try {
    await body(address);
  } finally {
    await stop();
  }
}
