// The page as `heaptap serve` shows it: progress, source text, two traces, a server that stops.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, directory, picture, serve, settled, trace, withPage } from "./browser.mjs";

after(closeBrowser);

const text = (page, selector) => page.locator(selector).first().innerText();

test("the source view has the text of a file beside its bytes", async () => {
  const root = directory("source-root");
  mkdirSync(`${root}/src`, { recursive: true });
  const lines = Array.from({ length: 40 }, (_, at) => `let line_${at + 1} = ${at === 32 ? '"<script>window.hacked = 1</script>"' : at}`);
  writeFileSync(`${root}/src/render.ml`, `${lines.join("\n")}\n`);
  await serve(["--source-root", root, await trace("service.ctf")], (address) =>
    withPage(address, { fragment: "#source&metric=allocated&open=src%2Frender.ml&line=33", requests: "own" }, async (page) => {
      await page.locator(".code td.text", { hasText: "let line_40 " }).waitFor();
      const row = await page.locator("tr.wanted").innerText();
      assert.match(row, /[KM]iB\s+± [\d.]+ %\s+33\s+let line_33 = "<script>window\.hacked/);
      assert.equal(await page.evaluate(() => window.hacked), undefined);
      await picture(page, "source");
      await page.locator(".file", { hasText: "json.ml" }).click();
      await page.locator(".lines .problem").waitFor();
      assert.match(await text(page, ".lines .problem"), /json\.ml/);
      assert.ok((await page.locator(".code tbody tr").count()) > 0, "lines are there without their text");
      await picture(page, "source-missing");
    }));
});

test("two traces are there to choose from and to compare", async () =>
  serve([await trace("before.ctf"), await trace("service.ctf")], (address) =>
    withPage(address, { fragment: "#diff&trace=1&before=0&metric=allocated", requests: "own" }, async (page) => {
      assert.match(await text(page, ".sentence"), /→/);
      await page.getByLabel("Trace", { exact: true }).selectOption("1");
      await page.keyboard.press("1");
      await settled(page);
      assert.match(await text(page, ".sentence"), /keeps growing/);
    })));

test("it listens on loopback only, and shows the trace when it is read", async () => {
  let address;
  await serve([await trace("service.ctf")], async (found) => {
    address = found;
    await withPage(found, { requests: "own" }, async (page) => {
      assert.ok((await page.locator(".legend li").count()) > 3);
    });
  });
  assert.ok(address.startsWith("http://127.0.0.1:"));
});
