// The page says nothing that is not so, and no two things that contradict each other.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { bytesText, closeBrowser, exported, json, percentText, picture, serve, settled, sized, trace, traceOf, withPage } from "./browser.mjs";

after(closeBrowser);

const text = (page, selector) => page.locator(selector).first().innerText();
const chosen = (page, label) => page.getByLabel(label, { exact: true }).evaluate((select) => select.selectedOptions[0].textContent);
const sides = async (page) => [await chosen(page, "Before"), await chosen(page, "After")];

test("two traces are compared in the order in which they were named", async () => {
  const opened = async (page) => {
    await page.locator(".tabs a", { hasText: "Diff" }).click();
    await settled(page);
    assert.deepEqual(await sides(page), ["before.ctf", "service.ctf"]);
    const diff = await json("diff", "--json", "--metric", "peak", await trace("before.ctf"), await trace("service.ctf"));
    assert.ok((await text(page, ".sentence")).includes(`${sized(diff.total.before)} → ${sized(diff.total.after)}`));
  };
  const address = await exported("before.ctf", "service.ctf");
  await withPage(address, {}, async (page) => {
    await opened(page);
    await picture(page, "diff-order");
    await page.getByLabel("Before", { exact: true }).selectOption("1");
    await settled(page);
    assert.deepEqual(await sides(page), ["service.ctf", "before.ctf"], "it can be turned round");
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await settled(page);
    assert.deepEqual(await sides(page), ["service.ctf", "before.ctf"], "and a link keeps that");
  });
  await serve([await trace("before.ctf"), await trace("service.ctf")], async (address) => withPage(address, { requests: "own" }, opened));
});

test("with three traces, each can be compared with each", async () =>
  withPage(await exported("before.ctf", "service.ctf", "probes.ctf"), { fragment: "#diff" }, async (page) => {
    assert.deepEqual(await sides(page), ["before.ctf", "service.ctf"]);
    await page.getByLabel("Before", { exact: true }).selectOption("2");
    assert.deepEqual(await sides(page), ["probes.ctf", "service.ctf"], "the other side stays");
    await page.getByLabel("After", { exact: true }).selectOption("0");
    assert.deepEqual(await sides(page), ["probes.ctf", "before.ctf"]);
    await page.getByLabel("After", { exact: true }).selectOption("2");
    assert.deepEqual(await sides(page), ["before.ctf", "probes.ctf"], "both sides are never one trace");
    await settled(page);
  }));

test("the brush selects what the chart, its legend and the mark of the peak show", async () =>
  withPage(await exported("service.ctf"), { fragment: "#overview&metric=allocated&time=5000000-10000000" }, async (page) => {
    const path = await trace("service.ctf");
    const report = await json("report", "--json", "--by", "module", "--since", "5s", "--until", "10s", path);
    const rows = await page.locator(".legend li").allInnerTexts();
    for (const [at, row] of report.table.rows.slice(0, 8).entries()) {
      assert.ok(rows[at].includes(row.name) && rows[at].includes(sized(row)), `${rows[at]} is not ${row.name} ${sized(row)}`);
    }
    assert.match(await text(page, ".totals"), /at 10\.0 s/, "the peak of these blocks");
    await picture(page, "brush-overview");
    const box = await page.locator(".timeline-brush").boundingBox();
    const painted = await page.locator(".timeline canvas").evaluate((canvas) => {
      const y = (canvas.clientHeight - 26 - 4) * devicePixelRatio;
      const { data, width } = canvas.getContext("2d").getImageData(0, y, canvas.width, 1);
      return [0.1, 0.4].map((part) => data[4 * Math.round((66 + (width / devicePixelRatio - 80) * part) * devicePixelRatio) + 3] !== 0);
    });
    assert.deepEqual(painted, [false, true], "nothing is painted before the brush, and an area inside");
    await page.mouse.move(box.x + box.width * 0.1, box.y + 80);
    assert.match(await text(page, ".legend-head"), /at (1\.9|2\.0) s\s+0 bytes/, "nothing of it was alive before");
    assert.equal((await text(page, ".sentence a")).toLowerCase(), (await json("leaks", "--json", path)).verdict.toLowerCase(), "growth is that of the whole run");
  }));

test("what is not known has a gap in its lane, and no time is paused for longer than it lasts", async () =>
  withPage(await exported("late-probes.ctf"), {}, async (page) => {
    const lane = (name) => page.locator(".lane", { has: page.locator("b", { hasText: new RegExp(`^${name}$`) }) });
    await lane("heap").waitFor();
    // The sidecar begins at 5 s of 20 s, and a point is 200 ms.
    for (const name of ["heap", "paused", "longest"]) {
      const lines = await lane(name).locator("polyline").evaluateAll((all) => all.map((line) => line.getAttribute("points").split(" ").map((point) => point.split(",").map(Number))));
      assert.equal(lines.length, 1, name);
      assert.ok(lines[0][0][0] >= 320 * 0.25 && lines[0][0][0] <= 320 * 0.27, `${name} begins at ${lines[0][0]}`);
    }
    const paused = await lane("paused").locator(".lane-name").innerText();
    assert.match(paused, /≤ 100\.0 %/);
    const line = await lane("paused").locator("polyline").getAttribute("points");
    const top = line.split(" ").filter((point) => Number(point.split(",")[1]) < 5).length;
    assert.ok(top >= 14 && top <= 16, `3 s are 15 points of 200 ms, not ${top}`);
    const box = await page.locator(".timeline-brush").boundingBox();
    for (const part of [0.1, 0.9]) {
      await page.mouse.move(box.x + box.width * part, box.y + 80);
      await page.locator(".lane .timeline-cursor").first().waitFor();
      assert.match(await lane("heap").locator(".lane-name").innerText(), /not known/, `at ${part}`);
    }
    await picture(page, "lanes-gap");
  }));

test("the verdict on a trace that is damaged or cut short says what was not seen", async () => {
  const whole = readFileSync(await trace("before.ctf"));
  const hurt = Buffer.from(whole);
  hurt.fill(0xff, 150_000, 150_400);
  const kinds = [["cut-before.ctf", whole.subarray(0, Math.floor(whole.length * 0.9)), /not all.*ends inside a packet/s], ["hurt-before.ctf", hurt, /not all.*damaged/s]];
  for (const [name, bytes, words] of kinds) {
    const path = traceOf(name, bytes);
    await withPage(await exported(path), {}, async (page) => {
      assert.match(await text(page, ".sentence"), words);
      await picture(page, name.replace(".ctf", ""));
      await page.locator(".tabs a", { hasText: "Leaks" }).click();
      await settled(page);
      assert.match(await text(page, ".leaks .sentence"), words);
      assert.match(await text(page, ".leaks .prose"), /what was not read/);
    });
  }
  await withPage(await exported("before.ctf"), {}, async (page) => assert.match(await text(page, ".sentence"), /^No site seen growing up to/));
});

test("survived is what report means by it, and what survived a major collection has a name of its own", async () =>
  withPage(await exported("probes.ctf"), { fragment: "#table&metric=survived" }, async (page) => {
    await page.locator("#metric option", { hasText: "Survived a major collection" }).waitFor({ state: "attached" });
    await settled(page);
    const report = await json("report", "--json", "--metric", "survived", await trace("probes.ctf"));
    const total = async () => (await text(page, "tfoot tr:last-child")).replace(/\s+/g, " ");
    assert.ok((await total()).startsWith(sized(report.table.total)), `${await total()}: not ${sized(report.table.total)}`);
    await page.locator("#metric").selectOption("major");
    await settled(page);
    assert.ok(!(await total()).startsWith(sized(report.table.total)), await total());
    assert.match(await text(page, ".tools h2"), /^Survived a major collection/);
  }));

test("a leak card says one thing about what is kept", async () => {
  for (const [name, says] of [["service.ctf", () => "What it allocates is kept, whenever"], ["partly-kept.ctf", (kept) => `Some ${kept} of what it allocates is kept, whenever`]]) {
    const [leak] = (await json("leaks", "--json", await trace(name))).leaks;
    await withPage(await exported(name), { fragment: "#leaks" }, async (page) => {
      const kept = percentText(leak.live.bytes / leak.allocated.bytes);
      assert.match(await text(page, ".card .panel-facts"), new RegExp(`of all that it allocated\\s+${kept}`));
      assert.ok((await text(page, ".advice")).startsWith(says(kept)), await text(page, ".advice"));
      await picture(page, `leak-card-${name}`);
    });
  }
});

test("lifetimes are said to be of a frame's own blocks, and what was not collected has none", async () =>
  withPage(await exported("service.ctf"), { fragment: "#table&metric=peak&row=Session.remember@src%2Fsession.ml" }, async (page) => {
    await page.locator(".own-blocks").waitFor();
    const row = (await json("report", "--json", await trace("service.ctf"))).table.rows.find(({ name }) => name === "Session.remember");
    assert.ok((await text(page, ".own-blocks")).includes(`${bytesText(row.bytes)} that it allocates itself`), await text(page, ".own-blocks"));
    const live = (await json("report", "--json", "--metric", "live", await trace("service.ctf"))).table.rows.find(({ name }) => name === "Session.remember");
    assert.ok((await text(page, ".never-freed")).includes(`${bytesText(live.bytes)} not collected`), await text(page, ".never-freed"));
    const ends = await page.locator('[aria-label^="Bytes by lifetime"] title').evaluateAll((all) => all.map((title) => title.textContent));
    assert.ok(ends.every((title) => !/min|2[1-9]\.|[3-9]\d\.\d s/.test(title)), ends.join());
    await picture(page, "own-lifetimes");
  }));

test("where the peak and the sum of its rows differ, a sentence says why", async () => {
  const few = await trace("before.ctf");
  const { totals } = await json("report", "--json", "--metric", "peak", few);
  assert.notEqual(sized(totals.peak), sized(totals.live_at_peak), "the trace shows a difference");
  await withPage(await exported("before.ctf"), {}, async (page) => {
    assert.ok((await text(page, ".totals")).includes(sized(totals.peak)));
    const said = await text(page, ".peak-note");
    assert.ok(said.includes(sized(totals.live_at_peak)), said);
    assert.match(said, /too large by chance/);
    assert.ok((await text(page, ".flame .tools h2")).includes(sized(totals.live_at_peak)));
    await picture(page, "peak-sentence");
    await page.locator("#metric").selectOption("allocated");
    await settled(page);
    assert.equal(await page.locator(".peak-note").count(), 0, "other metrics have no second peak");
  });
});
