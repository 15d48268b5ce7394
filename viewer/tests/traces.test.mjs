// Traces of every kind: two to compare, damaged, empty, of one event, with hostile names, with
// 100,000 cells.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, directory, exported, exportedWith, fragment, json, picture, settled, sized, trace, traceOf, treeItems, withPage } from "./browser.mjs";

after(closeBrowser);

const text = (page, selector) => page.locator(selector).first().innerText();
const TABS = ["overview", "flame", "table", "leaks", "diff", "source"];

test("two traces are compared, in the tree and in the table", async () => {
  const page = await exported("before.ctf", "service.ctf");
  await withPage(page, { fragment: "#diff&trace=1&before=0&metric=allocated" }, async (page) => {
    const diff = await json("diff", "--json", await trace("before.ctf"), await trace("service.ctf"));
    assert.match(await text(page, ".sentence"), /no difference beyond sampling error|grew by|shrank by/);
    await picture(page, "diff");
    await page.getByRole("button", { name: "table" }).click();
    await settled(page);
    const rows = await page.locator("tbody tr").allInnerTexts();
    assert.equal(rows.length, diff.changes.length);
    for (const [at, change] of diff.changes.entries()) {
      assert.ok(rows[at].includes(change.name), `${rows[at]}: not ${change.name}`);
      assert.ok(rows[at].includes(change.difference_bytes > 0 ? "▲" : "▼"));
    }
    await picture(page, "diff-table");
    await page.goBack();
    await settled(page);
    assert.ok((await treeItems(page)).length > 1);
  });
});

test("one trace says how two are compared", async () =>
  withPage(await exported("service.ctf"), { fragment: "#diff" }, async (page) => {
    assert.match(await text(page, ".message"), /heaptap serve before\.ctf after\.ctf/);
  }));

test("a trace that is cut short is shown, and says so", async () => {
  const whole = readFileSync(await trace("service.ctf"));
  const cut = traceOf("cut.ctf", whole.subarray(0, Math.floor(whole.length * 0.6)));
  await withPage(await exported(cut), {}, async (page) => {
    assert.match(await text(page, ".notice"), /the file ends inside a packet/);
    assert.ok((await page.locator(".legend li").count()) > 3);
    await picture(page, "cut-short");
  });
});

test("a trace that is damaged in the middle is shown as far as it goes", async () => {
  const bytes = Buffer.from(readFileSync(await trace("service.ctf")));
  bytes.fill(0xff, 150_000, 150_400);
  const damaged = traceOf("damaged.ctf", bytes);
  await withPage(await exported(damaged), {}, async (page) => {
    assert.ok((await page.locator(".notice").count()) > 0, "it says that something is missing");
    await picture(page, "damaged");
  });
});

test("a trace without an allocation says what to do, on every tab", async () =>
  withPage(await exported("fuzz/corpus/decode/empty.v2"), {}, async (page) => {
    for (const tab of TABS) {
      await page.locator(".tabs a", { hasText: new RegExp(tab, "i") }).click();
      assert.match(await text(page, ".message"), /No allocation was sampled.*heaptap run --rate/s);
    }
    await picture(page, "empty");
  }));

test("a trace of one event is shown on every tab", async () =>
  withPage(await exported("fuzz/corpus/decode/one.v2"), {}, async (page) => {
    for (const tab of TABS) {
      await page.locator(".tabs a", { hasText: new RegExp(tab, "i") }).click();
      await settled(page);
      assert.ok((await text(page, "main")).length > 20);
      await picture(page, `one-event-${tab}`);
    }
  }));

test("what has no sample is said to be less than a bound, not 0", async () =>
  withPage(await exported("before.ctf"), { fragment: "#overview&function=Config.read" }, async (page) => {
    const { totals } = await json("report", "--json", "--filter", "Config.read", await trace("before.ctf"));
    assert.equal(totals.live.error, null);
    assert.match(await text(page, ".totals"), /live at end\s+less than 23\.4 KiB \(no sample\)/);
  }));

test("names that are HTML and script stay text, on every tab", async () =>
  withPage(await exported("hostile.ctf"), {}, async (page) => {
    for (const tab of [...TABS, "overview&over=label&multiples=1", "table&by=label", "table&by=file", "flame&search=script"]) {
      await page.evaluate((fragment) => { location.hash = fragment; }, tab);
      await settled(page);
      await picture(page, `hostile-${tab.replace(/\W+/g, "-")}`);
    }
    await page.evaluate(() => { location.hash = "table&by=label"; });
    await settled(page);
    await page.locator("tbody tr").first().click();
    await settled(page);
    await page.evaluate(() => { location.hash = "flame"; });
    await settled(page);
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await settled(page);
    const box = await page.locator(".icicle-box").boundingBox();
    await page.mouse.move(box.x + 30, box.y + 50);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("#page script, #page iframe, #page img, #page svg[onload]").count(), 0);
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await settled(page);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.match(await fragment(page), /focus=/);
  }));

test("what would hide or turn the text around is written out", async () =>
  withPage(await exported("hostile.ctf"), { fragment: "#table&by=label&metric=allocated" }, async (page) => {
    const shown = await page.locator("tbody").innerText();
    assert.ok(shown.includes("\\x1b[31mred"));
    assert.ok(shown.includes("\\u{202e}backwards"));
    assert.ok(!/[\u202e\u0007\u001b]/.test(shown));
  }));

test("a page has the text of source files if it was asked for", async () => {
  const sources = directory("page-source-root");
  mkdirSync(`${sources}/src`, { recursive: true });
  writeFileSync(`${sources}/src/render.ml`, Array.from({ length: 40 }, (_, at) => `let line_${at + 1} = "</script><script>window.hacked = 1</script>"`).join("\n"));
  const address = await exportedWith(["--with-source", "--source-root", sources], "service.ctf");
  await withPage(address, { fragment: "#source&metric=allocated&open=src%2Frender.ml&line=33" }, async (page) => {
    await page.locator(".code td.text", { hasText: "let line_40 " }).waitFor();
    assert.match(await page.locator("tr.wanted").innerText(), /[KM]iB\s+± [\d.]+ %\s+33\s+let line_33/);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await picture(page, "source-in-page");
    await page.locator(".file", { hasText: "json.ml" }).click();
    await page.locator(".lines .problem").waitFor();
    assert.match(await text(page, ".lines .problem"), /json\.ml was not found under --source-root/);
  });
});

test("a directory of traces is one trace in the page", async () => {
  const traces = directory("several");
  for (const name of ["before.ctf", "service.ctf"]) copyFileSync(await trace(name), `${traces}/${name}`);
  await withPage(await exported(traces), { fragment: "#table&by=domain&metric=live" }, async (page) => {
    assert.match(await text(page, ".head"), /several \(2 traces\)/);
    const { table } = await json("report", "--json", "--by", "domain", "--metric", "live", traces);
    const rows = await page.locator("tbody tr").allInnerTexts();
    assert.equal(rows.length, table.rows.length);
    for (const [at, row] of table.rows.entries()) assert.ok(rows[at].replace(/\s+/g, " ").includes(sized(row)), rows[at]);
    await page.keyboard.press("1");
    await settled(page);
    await picture(page, "directory");
  });
});

test("a zoom brings cells that were too small to see", async () =>
  withPage(await exported("cells.ctf"), { fragment: "#flame&metric=allocated" }, async (page) => {
    const joined = async () => Number(/([\d,]+) small frames? joined/.exec(await text(page, ".tools"))?.[1].replaceAll(",", "") ?? 0);
    const before = await joined();
    assert.ok(before > 1000, `${before} small frames are joined`);
    const box = await page.locator(".icicle-box").boundingBox();
    await page.mouse.move(box.x + 300, box.y + 30);
    await page.keyboard.down("Control");
    for (let times = 0; times < 5; times++) await page.mouse.wheel(0, -120);
    await page.keyboard.up("Control");
    await settled(page);
    assert.ok(await joined() < before / 2, `${await joined()} of ${before} small frames are still joined`);
    await picture(page, "zoomed");
  }));

test("100,000 cells are shown, found and focused", async () =>
  withPage(await exported("cells.ctf"), { fragment: "#flame&metric=allocated" }, async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("function2");
    await settled(page);
    const [, frames] = /^([\d,]+) frames/.exec(await text(page, ".found"));
    assert.ok(Number(frames.replaceAll(",", "")) >= 80_000, `${frames} frames found`);
    await picture(page, "cells");
    await page.keyboard.press("Escape");
    const box = await page.locator(".icicle-box").boundingBox();
    await page.mouse.move(box.x + 300, box.y + 30);
    await page.keyboard.down("Control");
    for (let times = 0; times < 20; times++) await page.mouse.wheel(0, -120);
    await page.keyboard.up("Control");
    await settled(page);
    assert.match(await text(page, ".tip"), /function/);
    await picture(page, "cells-zoomed");
    await page.mouse.dblclick(box.x + 300, box.y + 30);
    await settled(page);
    assert.match(await fragment(page), /focus=Module\d+/);
  }));
