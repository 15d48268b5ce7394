// Measures a page of the viewer in Chromium, for benches/viewer:
//
//   node viewer/measure.mjs serve HEAPTAP TRACE    opening, filters, the brush, memory
//   node viewer/measure.mjs cells ADDRESS          frames per second while the call tree is zoomed
//
// Prints one object: times in milliseconds, memory in KiB. `shown`, `figures` and `complete` count from the
// start of `heaptap serve`. The browser runs before that.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const FILTERS = ["a", "e", "i", "o", "r", "st", "in", "er", "un", "mod", "map", "1", "2", "3", "17", "m.*n", "[A-F]", "z", "^M", "t$"];

const [what, ...rest] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Calls `act` in the page and returns the milliseconds until its answers are painted. */
const painted = (page, act, argument) =>
  page.evaluate(async ([source, argument]) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const begun = performance.now();
    new Function("argument", source)(argument);
    // Painted when no answer is awaited in six frames; it was so in the first of them.
    let since = 0;
    for (let quiet = 0; quiet < 6;) {
      await frame();
      const busy = document.querySelector("main")?.getAttribute("aria-busy") !== "false";
      quiet = busy ? 0 : quiet + 1;
      if (quiet === 1) since = performance.now();
      if (performance.now() - begun > 600_000) throw new Error("the page stays busy");
    }
    return since - begun;
  }, [act, argument]);

/** Counts frames, and changes of the call tree's title, while `act` runs. */
async function frames(page, act) {
  await page.evaluate(() => {
    const count = { times: [], titles: 0, on: true };
    globalThis.measured = count;
    let title;
    const tick = (now) => {
      count.times.push(now);
      const shown = document.querySelector(".tools h2")?.textContent;
      if (shown !== title) count.titles += 1;
      title = shown;
      if (count.on) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  await act();
  return page.evaluate(() => {
    const { times, titles } = globalThis.measured;
    globalThis.measured.on = false;
    const steps = times.slice(1).map((time, at) => time - times[at]).sort((one, other) => one - other);
    const seconds = (times.at(-1) - times[0]) / 1000;
    return { perSecond: steps.length / seconds, slowest: steps[Math.floor(steps.length * 0.95)], updatesPerSecond: (titles - 1) / seconds };
  });
}

/** The resident memory of the largest renderer, in KiB. */
async function memory() {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return Math.max(...processInfo.filter(({ type }) => type === "renderer").map(({ id }) => resident(id, "VmRSS")));
}

const resident = (id, field) => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1] ?? 0);

/** Serves a trace, and adds the server's largest memory to what is measured in its page. */
async function measureServer(page, heaptap, trace) {
  const empty = await emptyPage(page);
  const begun = performance.now();
  const server = spawn(heaptap, ["serve", "--no-open", trace], { stdio: ["ignore", "pipe", "pipe"] });
  try {
    const address = await new Promise((found, failed) => {
      let said = "";
      const hear = (text) => {
        const match = /http:\/\/\S+/.exec((said += text));
        if (match) found(match[0]);
      };
      server.stdout.setEncoding("utf8").on("data", hear);
      server.stderr.setEncoding("utf8").on("data", hear);
      server.on("exit", (code) => failed(new Error(`heaptap serve ended with ${code}: ${said}`)));
    });
    return { ...await measurePage(page, address, begun), empty, server: resident(server.pid, "VmHWM") };
  } finally {
    server.kill("SIGINT");
  }
}

/** What Chromium needs for a page with nothing in it. */
async function emptyPage(page) {
  await page.goto("data:text/html,<title>empty</title>");
  return memory();
}

async function measurePage(page, address, begun) {
  await page.goto(address);
  await page.locator("main").waitFor();
  const shown = performance.now() - begun;
  // The first figures: of a trace that takes long to read, those of a part of it.
  await page.locator(".facts").first().waitFor({ timeout: 600_000 });
  const figures = performance.now() - begun;
  await page.locator(".live").waitFor({ state: "detached", timeout: 600_000 });
  await painted(page, "");
  const complete = performance.now() - begun;
  const filters = [];
  const base = await page.evaluate(() => location.hash || "#overview");
  for (const filter of FILTERS) {
    filters.push(await painted(page, "location.hash = argument", `${base}&function=${encodeURIComponent(filter)}`));
  }
  // What was allocated in a range of time changes with every step of the brush.
  await painted(page, "location.hash = argument", `${base}&metric=allocated`);
  const box = await page.locator(".brush").boundingBox();
  const at = (share) => [box.x + box.width * share, box.y + 60];
  await page.mouse.move(...at(0.2));
  await page.mouse.down();
  const brush = await frames(page, async () => {
    for (let step = 0; step < 120; step++) await page.mouse.move(...at(0.2 + step / 200));
  });
  await page.mouse.up();
  await painted(page, "");
  return { shown, figures, complete, filters, brush, memory: await memory() };
}

async function measureCells(page, address) {
  await page.goto(`${address}#flame&metric=allocated`);
  await painted(page, "");
  const box = await page.locator(".icicle-box").boundingBox();
  await page.mouse.move(box.x + 300, box.y + 30);
  await page.keyboard.down("Control");
  const zoom = await frames(page, async () => {
    for (let turn = 0; turn < 4; turn++) {
      for (let step = 0; step < 30; step++) await page.mouse.wheel(0, turn % 2 ? 120 : -120);
    }
  });
  await page.keyboard.up("Control");
  return { zoom, memory: await memory() };
}

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  page.setDefaultTimeout(600_000);
  console.log(JSON.stringify(await (what === "cells" ? measureCells : measureServer)(page, ...rest)));
} finally {
  await browser.close();
}
