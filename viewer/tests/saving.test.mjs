// What people take away: tables, call paths and pictures. All of it is made in the page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, exported, json, serve, settled, sized, trace, withPage } from "./browser.mjs";

after(closeBrowser);

/** What a click saves: its name and its bytes. */
async function saved(page, click) {
  const [download] = await Promise.all([page.waitForEvent("download"), click()]);
  return [download.suggestedFilename(), readFileSync(await download.path())];
}

async function savedAs(page, menu, form) {
  await page.getByRole("button", { name: menu, exact: true }).click();
  return saved(page, () => page.locator(".menu").getByRole("button", { name: new RegExp(`^${form}`) }).click());
}

/** The fields of comma-separated values. */
function fields(text) {
  const rows = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    (rows.at(-1)?.open ? rows.at(-1) : rows[rows.push(Object.assign([], { open: true })) - 1]).push(quoted?.replaceAll('""', '"') ?? plain);
    if (end !== ",") rows.at(-1).open = false;
  }
  return rows.filter((row) => row.length > 1).map((row) => [...row]);
}

const named = ([head, ...rows]) => rows.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at]])));

async function tableIsReport(page) {
  const [name, bytes] = await saved(page, () => page.getByRole("button", { name: "CSV", exact: true }).click());
  assert.equal(name, "service-by-function.csv");
  const rows = named(fields(bytes.toString()));
  const report = await json("report", "--json", "--top", "0", "--sites", "own", "--metric", "allocated", await trace("service.ctf"));
  for (const row of report.table.rows) {
    const found = rows.find((other) => other.name === row.name && other.file === (row.file ?? ""));
    for (const part of ["samples", "bytes", "error", "low", "high"]) assert.equal(Number(found[part]), row[part], `${row.name}: ${part}`);
  }
  assert.ok(rows.every((row) => Number(row.total_bytes) >= Number(row.bytes)), "totals");
}

test("the table as comma-separated values, from a file and from a server", async () => {
  await withPage(await exported("service.ctf"), { fragment: "#table&metric=allocated" }, tableIsReport);
  await serve([await trace("service.ctf")], (address) => withPage(address, { fragment: "#table&metric=allocated", requests: "own" }, tableIsReport));
});

test("names cannot become formulas of a spreadsheet, nor rows of the table", async () =>
  withPage(await exported("hostile.ctf"), { fragment: "#table&metric=allocated" }, async (page) => {
    const [, bytes] = await saved(page, () => page.getByRole("button", { name: "CSV", exact: true }).click());
    const [head, ...rows] = fields(bytes.toString());
    assert.ok(rows.length > 0);
    for (const row of rows) {
      assert.equal(row.length, head.length, row.join("|"));
      assert.doesNotMatch(row[0], /^[=+@-]/);
    }
  }));

test("the call tree as picture and table, and one call path to copy", async () =>
  withPage(await exported("service.ctf"), { fragment: "#flame&metric=allocated", permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const [name, svg] = await savedAs(page, "Save the call tree", "SVG");
    assert.equal(name, "service-flame.svg");
    const text = svg.toString();
    const well = await page.evaluate((text) => {
      const document = new DOMParser().parseFromString(text, "image/svg+xml");
      return { broken: document.querySelector("parsererror") !== null, texts: [...document.querySelectorAll("text")].map((each) => each.textContent), scripts: document.querySelectorAll("script, foreignObject").length };
    }, text);
    assert.equal(well.broken, false);
    assert.equal(well.scripts, 0);
    assert.ok(well.texts.some((each) => each.includes("Server.main")), well.texts.join());
    assert.doesNotMatch(text, /oklch/, "colours that every program knows");
    assert.match(well.texts[0], /^service\.ctf: allocated, [\d.]+ \w+ ± [\d.]+ %/);

    const [, png] = await savedAs(page, "Save the call tree", "PNG");
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    assert.ok(png.length > 5_000 && png.readUInt32BE(16) > 3000, `${png.readUInt32BE(16)} pixels wide`);

    const [, csv] = await savedAs(page, "Save the call tree", "CSV");
    const rows = named(fields(csv.toString()));
    const report = await json("report", "--json", "--metric", "allocated", await trace("service.ctf"));
    assert.equal(Number(rows[0].bytes), report.table.total.bytes);
    const self = rows.reduce((sum, row) => sum + Number(row.self_samples), 0);
    const joined = rows.filter((row) => Number(row.frames) > 1).reduce((sum, row) => sum + Number(row.samples), 0);
    assert.equal(self + joined, report.table.total.samples, "the cells have all samples");

    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
    await settled(page);
    await page.getByRole("button", { name: "copy stack" }).click();
    await page.getByRole("button", { name: "copied" }).waitFor();
    const lines = (await page.evaluate(() => navigator.clipboard.readText())).trim().split("\n");
    assert.equal(lines.length, 4, lines.join("\n"));
    assert.ok(lines[0].includes(sized(report.table.total)));
    for (const line of lines.slice(1)) assert.match(line, /  [\d.]+ \w+ ± [\d.]+ %, [\d.]+ %$/);
  }));

for (const theme of ["light", "dark"]) {
  test(`the time line as a picture, ${theme}`, async () =>
    withPage(await exported("service.ctf"), { fragment: "#overview", theme }, async (page) => {
      const [name, svg] = await savedAs(page, "Save the time line", "SVG");
      assert.equal(name, "service-over-time.svg");
      for (const part of ["peak at", "MiB", "Session", "</svg>"]) assert.ok(svg.toString().includes(part), part);
      // The line is highest where the mark of the peak is.
      const [line] = /<path d="([^"]+)" fill="none" stroke="[^"]+" stroke-width="1.25"/.exec(svg.toString()).slice(1);
      const points = [...line.matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
      const [highest] = points.toSorted(([, one], [, other]) => one - other)[0];
      const mark = Number(/<path d="M([\d.]+) [^"]*" [^>]*stroke-dasharray="3 3"/.exec(svg.toString())[1]);
      assert.ok(Math.abs(highest - mark) <= 1, `${highest} is not at ${mark}`);
      const [, png] = await savedAs(page, "Save the time line", "PNG");
      // What was saved can be seen: it has the colours of the layers.
      const colours = await page.evaluate(async (bytes) => {
        const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, image.width, image.height);
        const found = new Map();
        for (let at = 0; at < data.length; at += 4) {
          const key = data.slice(at, at + 3).join();
          found.set(key, (found.get(key) ?? 0) + 1);
        }
        return [...found.values()].filter((count) => count > 2000).length;
      }, [...png]);
      assert.ok(colours > 4, `${colours} colours`);
    }));
}

test("hot fragments as comma-separated values", async () =>
  withPage(await exported("service.ctf"), { fragment: "#table&hot=1&metric=allocated" }, async (page) => {
    const [, csv] = await saved(page, () => page.getByRole("button", { name: "CSV", exact: true }).click());
    const rows = named(fields(csv.toString()));
    const { fragments } = await json("hot", "--json", "--metric", "allocated", await trace("service.ctf"));
    assert.ok(rows.length > 0 && fragments.length > 0);
    assert.equal(Number(rows[0].bytes), fragments[0].bytes);
  }));
