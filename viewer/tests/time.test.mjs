// The time axis: its labels, zoom and pan, and the heat map.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, exported, fragment, json, picture, settled, sized, trace, withPage } from "./browser.mjs";

after(closeBrowser);

const service = await exported("service.ctf");
const open = (fragment, body, options = {}) => withPage(service, { fragment, ...options }, body);
const text = (page, selector) => page.locator(selector).first().innerText();
const seen = (page) => page.evaluate(() => /zoom=(\d+)-(\d+)/.exec(location.hash)?.slice(1).map(Number) ?? null);
/** Of service.ctf, in microseconds. */
const DURATION = (await json("report", "--json", await trace("service.ctf"))).duration_us;
/** The address follows changes within a gesture a little later. */
const addressed = async (page) => {
  await page.waitForTimeout(900);
  await settled(page);
};

/** What is written on canvases, where: recorded from the beginning. */
const recorded = {
  before: (page) => page.addInitScript(() => {
    globalThis.written = new Map();
    const { fillText, setTransform } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.setTransform = function (...matrix) {
      globalThis.written.set(this.canvas, []);
      return setTransform.apply(this, matrix);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      const width = this.measureText(text).width;
      const left = this.textAlign === "center" ? x - width / 2 : this.textAlign === "right" ? x - width : x;
      globalThis.written.get(this.canvas)?.push({ text, left, right: left + width, y });
      return fillText.call(this, text, x, y);
    };
  }),
};

/** The labels of both axes of the time line. */
const labels = (page) => page.evaluate(() => {
  const canvas = document.querySelector(".timeline canvas");
  const all = globalThis.written.get(canvas) ?? [];
  const lowest = Math.max(...all.map(({ y }) => y));
  return { times: all.filter(({ y }) => y === lowest), sizes: all.filter(({ text, right }) => /^0$|[KMG]iB$|B$/.test(text) && right < 66), width: canvas.clientWidth };
});

test("the labels of both axes are round, apart, and more than one, at every zoom and width", () =>
  open("#flame", async (page) => {
    const spans = [null, [0, 100_000], [3_000_000, 17_000_000], [9_990_000, 10_010_000], [10_000_000, 10_000_900], [7_654_321, 7_654_361], [19_000_000, 20_000_000]];
    for (const width of [360, 820, 1280, 1920]) {
      await page.setViewportSize({ width, height: 800 });
      for (const tab of ["flame", "overview"]) {
        for (const span of spans) {
          await page.evaluate((hash) => { location.hash = hash; }, `#${tab}${span ? `&zoom=${span.join("-")}` : ""}`);
          await settled(page);
          const found = await labels(page);
          const what = `${tab}, ${width} pixels, ${span}: ${found.times.map(({ text }) => text).join(" | ")}; ${found.sizes.map(({ text }) => text).join(" | ")}`;
          assert.ok(found.times.length >= 2, what);
          assert.ok(found.sizes.length >= 2, what);
          assert.equal(new Set(found.times.map(({ text }) => text)).size, found.times.length, what);
          for (const [at, { text, left, right }] of found.times.entries()) {
            assert.match(text, /^(0|[\d.]+ (µs|ms|s))$/, what);
            assert.ok(left >= 52 && right <= found.width, `${text} is cut: ${what}`);
            assert.ok(at === 0 || left > found.times[at - 1].right + 4, `${text} is covered: ${what}`);
          }
        }
      }
    }
  }, recorded));

test("labels of hours and days stand as on a clock", async () => {
  const { build } = await import("esbuild");
  const { outputFiles } = await build({ entryPoints: [new URL("../src/timeline/ticks.ts", import.meta.url).pathname], format: "esm", bundle: true, write: false });
  const { timeTicks } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
  const widthOf = (text) => 6 * text.length;
  const texts = (from, to) => timeTicks(from, to, 900, widthOf).map(({ text }) => text);
  assert.deepEqual(texts(0, 3e8), ["0", "30 s", "1 min", "1:30 min", "2 min", "2:30 min", "3 min", "3:30 min", "4 min", "4:30 min", "5 min"]);
  assert.deepEqual(texts(9e7, 9.2e7).slice(0, 3), ["1:30 min", "1:30.2 min", "1:30.4 min"]);
  assert.deepEqual(texts(7.2e9, 7.2e9 + 6e7).slice(1, 3), ["2:00:10 h", "2:00:20 h"]);
  for (const length of [1, 20, 999, 1e4, 1e5, 3e6, 1e8, 5e9, 1e11, 3e12]) {
    for (const from of [0, 1, 12345678, 1e10]) {
      const found = texts(from, from + length);
      assert.ok(found.length >= 2 || length === 1, `${from}, ${length}: ${found}`);
      assert.equal(new Set(found).size, found.length, found.join());
      assert.ok(found.every((text) => !/^\d+\.\d+ (h|min)$/.test(text)), found.join());
    }
  }
});

test("the wheel with Control enlarges the time about the pointer, at its own resolution; Back and the reset return", () =>
  open("#overview", async (page) => {
    const box = await page.locator(".brush").boundingBox();
    assert.equal(await page.locator(".zoom-strip").count(), 0);
    const left = Math.round(box.x + box.width / 4);
    const share = (left - box.x) / box.width;
    await page.mouse.move(left, box.y + 60);
    await page.keyboard.down("Control");
    for (let times = 0; times < 24; times++) await page.mouse.wheel(0, -120);
    await page.keyboard.up("Control");
    await addressed(page);
    const [from, to] = await seen(page);
    assert.ok(to - from < 200_000, `${from} to ${to}`);
    assert.ok(Math.abs((share * DURATION - from) / (to - from) - share) < 0.02, "what was below the pointer stays there");
    // Steps of the whole run are 100 ms.
    const times = new Set();
    for (let at = 0; at < 40; at++) {
      await page.mouse.move(box.x + (box.width * (at + 0.5)) / 40, box.y + 60);
      times.add((await text(page, ".legend-head")).split("(")[0]);
      const cursor = await page.locator(".timeline-brush > .timeline-cursor").boundingBox();
      assert.ok(Math.abs(cursor.x - (box.x + (box.width * (at + 0.5)) / 40)) < box.width / 90, "the cursor is at the point below the pointer");
    }
    assert.ok(times.size > 5, [...times].join());
    await picture(page, "zoom");
    await page.goBack();
    await settled(page);
    assert.equal(await seen(page), null, "all turns of the wheel are one step");
    await page.goForward();
    await settled(page);
    assert.deepEqual(await seen(page), [from, to]);
    await page.getByRole("button", { name: "whole run" }).click();
    await settled(page);
    assert.equal(await seen(page), null);
  }));

test("buttons, keys, the strip and a drag with Shift; the brush stays within what is shown", () =>
  open("#flame", async (page) => {
    await page.getByRole("button", { name: "Zoom into the time" }).click();
    await page.keyboard.press("+");
    await addressed(page);
    const near = async (from, to) => assert.deepEqual((await seen(page)).map((time) => Math.round(time / 1e4)), [from, to].map((time) => Math.round((time * DURATION) / 2e5)));
    await near(7.5, 12.5);
    await page.keyboard.press(".");
    await addressed(page);
    await near(8.75, 13.75);
    const part = page.getByRole("slider", { name: "Part of the run that is shown" });
    assert.equal(await part.getAttribute("aria-valuetext"), "8.7 s to 13.7 s of 20.0 s");
    await part.press("Home");
    await addressed(page);
    await near(0, 5);
    const box = await page.locator(".brush").boundingBox();
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + box.width * 0.8, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.4, box.y + 30, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await addressed(page);
    const [from, to] = await seen(page);
    assert.ok(Math.abs(from - 2_000_000) < 20_000 && Math.abs(to - from - 5_000_000) < 1000, `${from} to ${to}`);
    assert.equal(await page.locator(".chip").count(), 0, "moving is no brush");
    await page.mouse.move(box.x + box.width * 0.2, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 30, { steps: 4 });
    await page.mouse.up();
    await settled(page);
    assert.match(await text(page, ".chip"), /allocated\s+3\.0 s – 5\.0 s/);
    await page.keyboard.press("0");
    await settled(page);
    assert.equal(await seen(page), null);
    assert.match(await fragment(page), /time=/);
  }));

test("the lanes and the marks of snapshots stand on the axis that is shown, and no mark covers a label", async () => {
  await withPage(await exported("probes.ctf"), { fragment: "#overview&zoom=1000000-1200000" }, async (page) => {
    await page.locator(".lane").first().waitFor();
    const shown = await page.locator(".log-mark").count();
    await page.keyboard.press("0");
    await settled(page);
    assert.ok((await page.locator(".log-mark").count()) > shown, "lines of the log before what is shown");
  });
  await withPage(await exported("service.ctf", "service-1.heap", "service-2.heap", "service-3.heap"), { fragment: "#overview", ...recorded }, async (page) => {
    const marks = page.locator(".snapshot-mark");
    await marks.first().waitFor();
    const all = await marks.count();
    const { times } = await labels(page);
    const canvas = await page.locator(".timeline canvas").boundingBox();
    for (let at = 0; at < all; at++) {
      const { y, height } = await marks.nth(at).boundingBox();
      // Half of the diagonal of a square of 12 pixels.
      assert.ok(y + height / 2 + 8.5 <= canvas.y + times[0].y, "the diamond ends above the labels");
    }
    await page.evaluate(() => { location.hash = "#overview&zoom=0-1000000"; });
    await settled(page);
    assert.ok((await marks.count()) < all, "a mark outside of what is shown");
  });
});

test("a link with a zoom that the run does not have shows the whole run", () =>
  open("#overview&zoom=900000000-910000000", async (page) => {
    assert.equal(await page.locator(".zoom-strip").count(), 0);
    await page.evaluate(() => { location.hash = "#overview&zoom=5-x"; });
    await settled(page);
    assert.equal(await page.locator(".zoom-strip").count(), 0);
  }));

const heatRows = (page) => page.locator(".heat-name").allInnerTexts();

test("the rows of the heat map are those of the command line, also with filters", async () => {
  const path = await trace("service.ctf");
  for (const [link, ...options] of [
    ["#heat", "--metric", "allocated"],
    ["#heat&metric=promoted&by=module", "--metric", "promoted", "--by", "module"],
    ["#heat&function=Json&by=location&sites=innermost", "--metric", "allocated", "--filter", "Json", "--by", "location", "--sites", "innermost"],
  ]) {
    await open(link, async (page) => {
      const sites = options.includes("--sites") ? [] : ["--sites", "own"];
      const { table } = await json("report", "--json", ...options, ...sites, "--top", "30", path);
      const rows = await heatRows(page);
      assert.equal(rows.length, table.rows.length + (table.others.rows > 0 ? 1 : 0));
      for (const [at, row] of table.rows.entries()) assert.ok(rows[at].includes(sized(row)), `${rows[at]} is not ${row.name} ${sized(row)}`);
      if (table.others.rows > 0) assert.ok(rows.at(-1).includes(sized(table.others)));
    });
  }
});

test("a cell has its function, its time and its size; Enter makes it the brush and the row", () =>
  open("#heat", async (page) => {
    assert.match(await text(page, ".heat-notes"), /the metric above does not apply/);
    for (const key of ["ArrowRight", "ArrowDown", ...Array(30).fill("ArrowRight")]) await page.keyboard.press(key);
    const said = await text(page, ".heat-cell");
    const [, name, , , size] = /^(\S+) \((\S+)\), (.+): (.+)$/.exec(said);
    const before = await heatRows(page);
    assert.ok(before[1].includes(name), `${said} is not of ${before[1]}`);
    await page.keyboard.press("Enter");
    await settled(page);
    const [from, to] = /time=(\d+)-(\d+)/.exec(await fragment(page)).slice(1).map(Number);
    assert.match(await fragment(page), /row=/);
    assert.match(await fragment(page), /metric=allocated/);
    const report = await json("report", "--json", "--metric", "allocated", "--sites", "own", "--since", `${from}us`, "--until", `${to}us`, await trace("service.ctf"));
    const row = report.table.rows.find((row) => row.name === name);
    assert.equal(size, sized(row), "the cell is what the command line has of its time");
    assert.ok((await heatRows(page)).some((row) => row.includes(name) && row.includes(size)));
    assert.ok((await text(page, ".panel-name")).includes(name));
    await picture(page, "heat-brush");
    await page.goBack();
    await settled(page);
    assert.deepEqual(await heatRows(page), before);
  }));

test("the pointer shows a cell, a drag selects a time, and the table says when most of a row was allocated", () =>
  open("#heat&metric=allocated&by=module", async (page) => {
    const box = await page.locator(".heat-cells").first().boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 9);
    assert.match(await text(page, ".tip"), /\d (bytes|[KMG]iB) ± [\d.]+ %|no sample/);
    await page.mouse.down();
    await page.mouse.move(box.x + (box.width * 3) / 4, box.y + 60, { steps: 5 });
    await page.mouse.up();
    await settled(page);
    const [from, to] = /time=(\d+)-(\d+)/.exec(await fragment(page)).slice(1).map(Number);
    assert.ok(Math.abs(from - 1e7) < 3e5 && Math.abs(to - 1.5e7) < 3e5, `${from} to ${to}`);
    assert.match(await fragment(page), /row=/, "the row in which the drag began");
    await page.locator(".heat-table summary").click();
    assert.equal(await page.locator(".heat-table tbody tr").count(), await page.locator(".heat-row").count());
    await picture(page, "heat-drag");
  }));

test("the heat map is enlarged with the time line, and its rows are those that have most there", () =>
  open("#heat&metric=allocated", async (page) => {
    const whole = await heatRows(page);
    await page.evaluate(() => { location.hash = "#heat&metric=allocated&zoom=2000000-3000000"; });
    await settled(page);
    const part = await heatRows(page);
    assert.notDeepEqual(part, whole);
    const [line, cells] = await Promise.all([page.locator(".timeline-brush").boundingBox(), page.locator(".heat-cells").first().boundingBox()]);
    assert.ok(Math.abs(line.x - cells.x) < 2 && Math.abs(line.width - cells.width) < 2, JSON.stringify([line, cells]));
    await picture(page, "heat-zoom");
  }));
