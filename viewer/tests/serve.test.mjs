// The page as `heaptap serve` shows it: progress, source text, two traces, exact figures of thinned
// traces, a server that stops.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, directory, json, picture, serve, settled, sized, trace, traceOf, withPage } from "./browser.mjs";

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

test("of a thinned trace, figures without a filter are exact, and those with one can be made so", async () => {
  const path = await trace("service.ctf");
  const rows = async (page) => {
    await settled(page);
    // Not those that only call others.
    return (await page.locator("tbody tr").allInnerTexts()).filter((row) => !row.startsWith("<"));
  };
  const expected = async (...args) => (await json("report", "--json", "--top", "0", ...args, path)).table.rows;
  const agrees = (shown, rows) => shown.length === rows.length && rows.every((row, at) => shown[at].replace(/\s+/g, " ").includes(sized(row)));
  await serve(["--blocks", "2000", path], (address) =>
    withPage(address, { fragment: "#table&metric=peak&by=domain", requests: "own" }, async (page) => {
      assert.match(await text(page, ".head"), /every block followed/);
      assert.equal(await page.locator("#exact").count(), 0, "there is nothing to make exact");
      for (const by of ["domain", "label", "source", "module"]) {
        await page.getByLabel("What a row is").selectOption(by);
        assert.ok(agrees(await rows(page), await expected("--metric", "peak", "--by", by)), by);
      }
      await page.evaluate(() => { location.hash = "table&metric=live&by=function&domain=1"; });
      const filtered = await expected("--metric", "live", "--domain", "1");
      assert.ok(!agrees(await rows(page), filtered), "thinned figures are rough");
      await picture(page, "thinned");
      await page.locator("#exact").click();
      assert.ok(agrees(await rows(page), filtered), "the full reading has the figures of the command line");
      assert.match(await text(page, ".head"), /full reading/);
      await picture(page, "exact");
      await page.evaluate(() => { location.hash = "overview&metric=live&domain=1"; });
      await settled(page);
      const modules = await expected("--metric", "live", "--domain", "1", "--by", "module");
      assert.ok((await text(page, ".legend")).replace(/\s+/g, " ").includes(sized(modules[0])));
      await page.locator(".chip button").first().click();
      await settled(page);
      assert.equal(await page.locator("#exact").count(), 0);
    }));
});

test("a file that is gone cannot be made exact, and the page says why", async () => {
  const path = traceOf("moved.ctf", readFileSync(await trace("service.ctf")));
  await serve(["--blocks", "2000", path], (address) =>
    withPage(address, { fragment: "#table&metric=live&domain=1", requests: "own" }, async (page) => {
      rmSync(path);
      await page.locator("#exact").click();
      await settled(page);
      assert.match(await text(page, ".rows .problem"), /moved\.ctf is not there any more/);
      assert.match(await text(page, ".facts"), /one in \d+ small blocks counted/, "not a full reading");
      await picture(page, "exact-gone");
    }));
});

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

test("a trace that takes long to read is shown in part, and then as a whole", async () => {
  const path = await trace("probes.ctf");
  let percent = 12;
  let fetched = 0;
  // The server says that it has read a part for as long as the test wants it to.
  const before = async (page) => {
    await page.route(/\/status/, async (route) => {
      const response = await route.fetch();
      const [status] = await response.json();
      const live = { version: `test-${percent}`, state: "partial", percent };
      await route.fulfill({ response, json: [percent < 100 ? { ...status, state: "ready", live } : status] });
    });
    page.on("request", (request) => { fetched += request.url().includes("/trace/0") ? 1 : 0; });
  };
  await serve([path], (address) =>
    withPage(address, { fragment: "#table&metric=allocated&by=function", requests: "own", before }, async (page) => {
      const said = page.locator(".live");
      await said.filter({ hasText: "12 % read: figures so far" }).waitFor();
      assert.ok((await page.locator("tbody tr").count()) > 3, "there are figures");
      assert.equal(await page.locator("#pause").count(), 0, "there is nothing to pause");
      const major = page.locator('#metric option[value="major"]');
      assert.equal(await major.count(), 0, "its sidecar is further than what was read");
      await picture(page, "partial");
      percent = 57;
      await said.filter({ hasText: "57 % read" }).waitFor();
      percent = 100;
      await said.waitFor({ state: "detached" });
      await settled(page);
      const [first] = (await json("report", "--json", "--metric", "allocated", path)).table.rows;
      assert.ok((await page.locator("tbody tr").first().innerText()).replace(/\s+/g, " ").includes(sized(first)));
      assert.equal(await major.innerText(), "Survived a major collection");
      assert.equal(fetched, 3, "once for each part, and the whole");
    }));
});
