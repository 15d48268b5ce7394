// What the page knows of leaks beyond the verdict: suspects, holders; what it says of the trace; values below the pointer.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { bytesText, closeBrowser, exported, exportedWith, fragment, json, picture, serve, settled, sized, trace, withPage } from "./browser.mjs";
import { accessible, within } from "./looks.mjs";

after(closeBrowser);

const service = await exported("service.ctf");
const text = (page, selector) => page.locator(selector).first().innerText();
const plain = (text) => text.replace(/\s+/g, " ").trim();

test("where the page cannot tell, it has the suspects of the command line, each with why", async () => {
  const path = await trace("cells.ctf");
  const found = await json("leaks", "--json", "--sites", "own", path);
  assert.match(found.verdict, /^cannot tell/);
  assert.ok(found.suspects.rows.length > 0, JSON.stringify(found));
  await withPage(await exported("cells.ctf"), { fragment: "#leaks" }, async (page) => {
    assert.equal((await text(page, ".leaks .sentence")).split(" (")[0].toLowerCase(), found.verdict.toLowerCase());
    const cards = (await page.locator(".card.suspect").allInnerTexts()).map(plain);
    assert.equal(cards.length, found.suspects.rows.length);
    for (const [at, { site, growth, live, undecided }] of found.suspects.rows.entries()) {
      for (const part of [site.name, sized(growth), sized(live), undecided]) assert.ok(cards[at].includes(part), `no “${part}” in ${cards[at]}`);
    }
    await picture(page, "suspects");
    await page.evaluate(() => { location.hash = "#overview"; });
    await settled(page);
    assert.match(await text(page, ".verdict"), /grew most: /);
  });
});

test("a filter that leaves nothing is what the verdict names, and a brush changes no verdict", () =>
  withPage(service, { fragment: "#leaks&function=nothing.like.this" }, async (page) => {
    assert.match(await text(page, ".leaks .sentence"), /^Cannot tell: no block passes the filters/);
    assert.doesNotMatch(await text(page, ".leaks"), /longer run/);
    await page.getByRole("button", { name: "search all blocks" }).click();
    await settled(page);
    assert.match(await text(page, ".leaks .sentence"), /^1 site keeps growing/);
    for (const view of ["#leaks&time=1000-2000", "#overview&time=1000-2000", "#leaks&zoom=1000-2000"]) {
      await page.evaluate((hash) => { location.hash = hash; }, view);
      await settled(page);
      assert.match(await text(page, ".sentence"), /^1 site keeps growing/, view);
    }
    const path = await trace("service.ctf");
    for (const [filter, ...options] of [["size=1-8", "--min-size", "1", "--max-size", "8"], ["function=Json", "--filter", "Json"], ["function=Session", "--filter", "Session"]]) {
      await page.evaluate((hash) => { location.hash = hash; }, `#leaks&${filter}`);
      await settled(page);
      const { verdict } = await json("leaks", "--json", "--sites", "own", ...options, path);
      assert.equal((await text(page, ".leaks .sentence")).split(" (")[0].toLowerCase(), verdict.toLowerCase());
    }
  }));

test("the card of a leak has the holder of its blocks, which leads to the snapshot", async () => {
  const page = await exported("service.ctf", "service-1.heap", "service-2.heap", "service-3.heap");
  for (const sites of ["own", "innermost"]) {
    const [leak] = (await json("leaks", "--json", "--sites", sites, "--heap", await trace("service-3.heap"), await trace("service.ctf"))).leaks;
    const [{ holder }] = leak.held_by;
    await withPage(page, { fragment: `#leaks${sites === "own" ? "" : "&sites=innermost"}` }, async (page) => {
      const held = plain(await text(page, ".card .held-by"));
      assert.ok(held.includes(`${holder} (`) && held.includes("in service-3.heap, taken at 19.0 s"), held);
      await page.getByRole("button", { name: "the holder in Snapshots" }).click();
      await settled(page);
      assert.match(await fragment(page), /^#snapshots&.*snapshot=2/);
      assert.ok((await text(page, ".panel-name, .holders .tools h2")).includes(holder));
      await page.goBack();
      await settled(page);
      assert.match(await fragment(page), /^#leaks/);
    });
  }
  await withPage(service, { fragment: "#leaks" }, async (page) => assert.equal(await page.locator(".held-by").count(), 0, "without a snapshot, none"));
});

test("trace facts are those of heaptap info, for every trace", async () => {
  const facts = async (page) => page.locator("dialog[open] section").evaluateAll((sections) => sections.map((section) => Object.fromEntries([...section.querySelectorAll("dl > div")].map((row) => [row.querySelector("dt").textContent, row.querySelector("dd").textContent]))));
  const check = async (found, name) => {
    const info = await json("info", "--json", await trace(name));
    const number = (value) => value.toLocaleString("en");
    assert.equal(found["program"], info.executable);
    assert.equal(found["host"], info.host);
    assert.equal(found["process"], String(info.pid));
    assert.equal(found["started"], `${new Date(info.start_unix_us / 1000).toISOString().slice(0, 23).replace("T", " ")} UTC`);
    assert.ok(found["lasted"].includes(`${number(info.duration_us)} µs`), found["lasted"]);
    assert.ok(found["sampling rate"].startsWith(`${info.sample_rate},`), found["sampling rate"]);
    assert.equal(found["word"], `${info.word_bits} bits`);
    assert.equal(found["runtime's parameters"], info.runtime_params || "none");
    assert.equal(found["samples"], number(info.events.samples));
    assert.ok(found["file"].includes(`${number(info.bytes)} bytes`), found["file"]);
    assert.equal(found["format"], `memtrace ${info.version}`);
  };
  await withPage(await exported("before.ctf", "service.ctf"), { fragment: "#table" }, async (page) => {
    await page.getByRole("button", { name: "facts" }).click();
    const both = await facts(page);
    assert.equal(both.length, 2);
    await check(both[0], "before.ctf");
    await check(both[1], "service.ctf");
    await picture(page, "trace-facts");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("dialog[open]").count(), 0);
    await page.keyboard.press("t");
    await page.locator("dialog[open]").waitFor();
  });
  await serve([await trace("service.ctf")], (address) => withPage(address, { requests: "own" }, async (page) => {
    await page.locator("#trace-facts").click();
    const [found] = await facts(page);
    await check(found, "service.ctf");
  }));
});

test("small charts say their value below the pointer, and their scale", () =>
  withPage(service, { fragment: "#leaks" }, async (page) => {
    const scale = await page.locator(".card .scale").allInnerTexts();
    assert.match(scale[0], /live size up to [\d.]+ [KMG]iB, 95 % band/);
    assert.match(scale[1], /still alive, up to [\d.]+ [KMG]iB/);
    for (const chart of [0, 1]) {
      const box = await page.locator(".card .told").nth(chart).boundingBox();
      await page.mouse.move(box.x + box.width - 3, box.y + 20);
      assert.match(await text(page, ".told-text"), /\d+\.\d [KMG]iB/);
    }
    const [leak] = (await json("leaks", "--json", await trace("service.ctf"))).leaks;
    assert.ok((await text(page, ".told-text")).endsWith(`${bytesText(leak.survivors.at(-1))} still alive`), await text(page, ".told-text"));
    await page.evaluate(() => { location.hash = "#overview&multiples=1"; });
    await settled(page);
    assert.match(await text(page, ".multiples-scale"), /each from 0 to [\d.]+ [KMG]iB, and from 0/);
    const box = await page.locator(".multiples .told").first().boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 20);
    assert.match(await text(page, ".told-text"), /^[\d.]+ s: [\d.]+ [KMG]iB/);
  }));

test("a lane says its value below the pointer that is on it", async () =>
  withPage(await exported("probes.ctf"), {}, async (page) => {
    const rss = page.locator(".lane", { hasText: "RSS" });
    assert.match(await rss.locator(".lane-name").innerText(), /≤ \d/);
    const box = await rss.locator(".lane-plot").boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 10);
    await page.locator(".lane .timeline-cursor").first().waitFor();
    assert.doesNotMatch(await rss.locator(".lane-name").innerText(), /≤/);
  }));

test("suspects and facts fit every screen and are accessible", async () => {
  const page = await exported("cells.ctf");
  for (const theme of ["light", "dark"]) await accessible(page, ["#leaks", "#heat"], theme, `suspects-${theme}`);
  for (const width of [360, 820, 1920]) await within(page, ["#leaks", "#heat"], { width, height: 800 }, `suspects-${width}`);
  for (const theme of ["light", "dark"]) {
    await withPage(service, { theme, width: 480 }, async (page) => {
      await page.locator("#trace-facts").click();
      const { readFileSync } = await import("node:fs");
      const { createRequire } = await import("node:module");
      await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => `${id} ${nodes[0].html}`), []);
    });
  }
});
