// The table and the source lines: self and total, sorted, searched, with numbers of blocks.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, directory, exported, exportedWith, json, percentText, picture, settled, sized, trace, withPage } from "./browser.mjs";

after(closeBrowser);

const COMPILER = "crates/trace/tests/data/made-trees.v3.ctf";
const cells = (page) => page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim())));
const [SELF, TOTAL, NAME] = [0, 2, 7];
const spaced = (size, at) => `${size[at]} ${size[at + 1]}`;
const escaped = (name) => `^${name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;

for (const [name, sites] of [["service.ctf", "own"], ["service.ctf", "innermost"], [COMPILER, "innermost"]]) {
  test(`self is the row of heaptap report, total what a filter by its name selects: ${name}, ${sites}`, async () =>
    withPage(await exported(name), { fragment: `#table&metric=allocated&sites=${sites}&order=total` }, async (page) => {
      const path = await trace(name);
      const report = await json("report", "--json", "--top", "0", "--sites", sites, path);
      const rows = await cells(page);
      assert.ok(rows.length > 4);
      let [self, total] = [0, 0];
      for (const row of rows) {
        const known = report.table.rows.filter((other) => other.name === row[NAME]);
        if (known.length === 1) {
          assert.equal(spaced(row, SELF), sized(known[0]), row.join(" "));
          self += 1;
        }
        const named = rows.filter((other) => other[NAME] === row[NAME]).length;
        if (named > 1 || row[NAME].startsWith("(") || total >= 12) continue;
        const selected = await json("report", "--json", "--filter", escaped(row[NAME]), path);
        assert.equal(spaced(row, TOTAL), sized(selected.table.total), row.join(" "));
        assert.equal(row[4], percentText(selected.table.total.samples / report.table.total.samples));
        total += 1;
      }
      assert.ok(self > 2 && total > 2, `${self} and ${total} rows were compared`);
    }));
}

test("heads sort, one more click turns the order round, and a link keeps it", async () =>
  withPage(await exported("service.ctf"), { fragment: "#table&metric=allocated" }, async (page) => {
    const column = async (at) => (await cells(page)).map((row) => row[at]);
    const head = (name) => page.locator("th").filter({ has: page.getByRole("button", { name: new RegExp(`^${name}`) }) });
    assert.equal(await head("self").getAttribute("aria-sort"), "descending");
    for (const [name, at, first] of [["total", TOTAL, "descending"], ["function", NAME, "ascending"], ["blocks", 6, "descending"]]) {
      await head(name).getByRole("button").click();
      await settled(page);
      assert.equal(await head(name).getAttribute("aria-sort"), first);
      const before = await column(at);
      await head(name).getByRole("button").click();
      await settled(page);
      assert.notEqual(await head(name).getAttribute("aria-sort"), first);
      assert.notDeepEqual(await column(at), before, name);
      assert.deepEqual((await column(at)).toSorted(), before.toSorted(), "the same rows");
    }
    await head("function").getByRole("button").click();
    await settled(page);
    const names = await column(NAME);
    assert.deepEqual(names, names.toSorted());
    await page.waitForFunction(() => location.hash.includes("order=-name"));
    await page.reload();
    await settled(page);
    assert.deepEqual(await column(NAME), names);
    await picture(page, "table-sorted");
  }));

test("/ looks for rows in the table, Escape takes that back", async () =>
  withPage(await exported("service.ctf"), { fragment: "#table&metric=allocated" }, async (page) => {
    const all = (await cells(page)).length;
    await page.keyboard.press("/");
    await page.keyboard.type("json");
    await settled(page);
    await page.waitForFunction(() => /^#table.*find=json$/.test(location.hash));
    const found = await cells(page);
    assert.ok(found.length > 0 && found.length < all && found.every((row) => row.join(" ").toLowerCase().includes("json")));
    assert.match(await page.locator("tfoot").innerText(), new RegExp(`${found.length} of ${all} rows with “json”`));
    await picture(page, "table-found");
    await page.keyboard.press("Escape");
    await settled(page);
    assert.equal((await cells(page)).length, all);
    await page.waitForFunction(() => !location.hash.includes("find="));
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), "BODY");
    // Also when something else has the focus.
    await page.keyboard.press("/");
    await page.keyboard.type("no such row");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await page.locator("section.rows").innerText(), /No row contains “no such row”/);
    await page.keyboard.press("Escape");
    await settled(page);
    assert.equal((await cells(page)).length, all);
  }));

test("Escape ends a search of the tree, wherever the focus is", async () =>
  withPage(await exported("service.ctf"), { fragment: "#flame&metric=allocated" }, async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("json");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.equal(await page.locator(".found").count(), 1);
    await page.keyboard.press("Escape");
    await settled(page);
    assert.equal(await page.locator(".found").count(), 0);
    await page.waitForFunction(() => !location.hash.includes("search="));
  }));

test("each row has its number of blocks, but where a block counts in two rows", async () =>
  withPage(await exported("service.ctf"), { fragment: "#table&metric=allocated&by=source" }, async (page) => {
    assert.equal(await page.locator("th").filter({ hasText: "blocks" }).count(), 0, "promoted blocks have two sources");
    await page.getByLabel("What a row is").selectOption("domain");
    await settled(page);
    for (const row of await cells(page)) assert.match(row[4], /^[\d,.]+( million)? ± [\d.]+ %$/);
    assert.match(await page.locator("tbody tr td:nth-child(5)").first().getAttribute("title"), /^estimated from [\d,]+ blocks/);
  }));

test("source opens at the hottest line, with self and total", async () => {
  const sources = directory("long");
  mkdirSync(`${sources}/src`, { recursive: true });
  writeFileSync(`${sources}/src/render.ml`, Array.from({ length: 400 }, (_, at) => `let line_${at + 1} = ${at}\n`).join(""));
  const address = await exportedWith(["--with-source", "--source-root", sources], "service.ctf");
  await withPage(address, { fragment: "#source&metric=allocated&open=src%2Frender.ml", height: 500 }, async (page) => {
    const heads = await page.locator(".code th").allInnerTexts();
    assert.deepEqual(heads.slice(0, 4), ["self", "error", "total", "error"]);
    const row = page.locator("tr.hottest");
    assert.match(await row.locator("td.text").innerText(), /^let line_33 /);
    const [self, total] = await row.locator("td").allInnerTexts().then((all) => [`${all[0]} ${all[1]}`, `${all[2]} ${all[3]}`]);
    const report = await json("report", "--json", "--by", "location", "--sites", "own", await trace("service.ctf"));
    assert.equal(self, sized(report.table.rows.find(({ file, line }) => file === "src/render.ml" && line === 33)));
    assert.equal(total, self, "it calls nothing");
    const box = await row.evaluate((row) => {
      const [inner, outer] = [row.getBoundingClientRect(), row.closest(".table-box").getBoundingClientRect()];
      return { top: inner.top - outer.top, height: outer.height, scrolled: row.closest(".table-box").scrollTop };
    });
    assert.ok(box.scrolled > 0 && box.top > 0 && box.top < box.height, JSON.stringify(box));
    await picture(page, "source-hottest");
  });
});
