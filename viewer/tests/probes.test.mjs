// What a program says of itself: lanes on the axis of the time line, the tree of its probes, its log.

import assert from "node:assert/strict";
import { appendFileSync, copyFileSync, readFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, directory, exported, fragment, json, picture, runIn, serve, settled, trace, withPage } from "./browser.mjs";

after(closeBrowser);

const laneNames = (page) => page.locator(".lane-name b").allInnerTexts();
const OWN = ["heap", "in use", "RSS", "cgroup", "paused", "longest", "minor GC", "major GC"];

test("lanes, tree and log are those of the command line, in both themes and on a narrow screen", async () => {
  const path = await trace("probes.ctf");
  const page = await exported("probes.ctf");
  const said = await json("probes", "--json", path);
  for (const [theme, width] of [["light", 1280], ["dark", 1280], ["light", 420]]) {
    await withPage(page, { theme, width }, async (page) => {
      await page.locator(".program").waitFor();
      assert.deepEqual(await laneNames(page), [...OWN, "load", "sessions", "log"]);
      const rows = await page.locator(".probe-tree tbody tr").allInnerTexts();
      assert.equal(rows.length, said.probes.length + 2, "two branches above the probes");
      const requests = rows.find((row) => row.startsWith("all"));
      const total = said.probes.find(({ name }) => name === "requests/all").total;
      assert.ok(requests.includes(total.toLocaleString("en")), requests);
      assert.ok(rows.some((row) => row.includes("≥ ")), "a size that is cut");
      assert.equal(await page.locator(".log-mark").count(), said.log.length + said.stops.length);
      assert.equal(await page.locator(".log-mark.stop").count(), 1);
      assert.match(await page.locator(".log-lines").innerText(), /pause: the cache is full/);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} pixels too wide`);
      await picture(page, `probes-${theme}-${width}`);
    });
  }
});

test("lanes stand on the axis of the time line, follow the pointer, and can be chosen", async () => {
  await withPage(await exported("probes.ctf"), {}, async (page) => {
    await page.locator(".lane").first().waitFor();
    const [brush, plot] = await Promise.all([page.locator(".timeline-brush").boundingBox(), page.locator(".lane-plot").first().boundingBox()]);
    assert.ok(Math.abs(brush.x - plot.x) < 2 && Math.abs(brush.width - plot.width) < 2, JSON.stringify([brush, plot]));
    const rss = () => page.locator(".lane", { hasText: "RSS" }).locator(".lane-name").innerText();
    assert.match(await rss(), /≤ \d/);
    await page.mouse.move(brush.x + brush.width / 2, brush.y + 40);
    await page.locator(".lane .timeline-cursor").first().waitFor();
    assert.doesNotMatch(await rss(), /≤/);
    await picture(page, "probes-pointer");
    await page.getByLabel("requests/time on the time line").click();
    await page.getByLabel("cache/load on the time line").click();
    assert.deepEqual((await laneNames(page)).slice(OWN.length), ["sessions", "time", "log"]);
  });
});

test("a link opens the lanes that were chosen, and ignores names that are none", async () => {
  const address = await exported("probes.ctf");
  const lanes = async (page) => (await laneNames(page)).slice(OWN.length, -1);
  let link;
  await withPage(address, {}, async (page) => {
    await page.getByLabel("requests/time on the time line").click();
    await page.getByLabel("cache/load on the time line").click();
    link = await fragment(page);
    await page.goBack();
    await page.locator(".lane.probe", { hasText: "load" }).waitFor();
    assert.deepEqual(await lanes(page), ["load", "sessions", "time"], "Back undoes the last choice");
  });
  const name = (text) => encodeURIComponent(text);
  const opens = [
    [link, ["sessions", "time"]],
    ["#overview&lanes=", []],
    [`#overview&lanes=${name("requests/time")}/${name("<img src=x onerror=window.hacked=1>")}/__proto__/%ff/${name("requests/time")}`, ["time"]],
    ["#overview&lanes=nothing/constructor", ["load", "sessions"]],
    [`#overview&lanes=${"x/".repeat(50_000)}`, ["load", "sessions"]],
  ];
  for (const [given, shown] of opens) {
    await withPage(address, { fragment: given }, async (page) => {
      await page.locator(".program").waitFor();
      assert.deepEqual(await lanes(page), shown, given.slice(0, 80));
      assert.equal(await page.evaluate(() => window.hacked), undefined);
    });
  }
});

test("survivors of a major collection, if the sidecar counts those, and else of any, are as top counts them", async () => {
  const top = async (name) => (await runIn(directory("top"), "heaptap", "top", "--once", "--metric", "survived", "--top", "100", await trace(name))).stdout;
  const figures = (line) => /^\s*(\S+ \S+)\s+(\S+ %)\s+(\S+ %)\s/.exec(line).slice(1).join(" ± ");
  const shown = async (page) => {
    const cells = await page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [0, 1, 4].map((at) => row.children[at].textContent.trim())));
    // Not those that only call others.
    return cells.filter(([size]) => !size.startsWith("<")).map(([size, error, share]) => [size, error.replace(/^± */, ""), share].join(" ± "));
  };
  const said = {};
  for (const [name, words, title] of [["probes.ctf", /Survived a major collection/, /as key o of heaptap top/], ["service.ctf", /Survived any collection/, /as heaptap report --metric survived/]]) {
    const printed = await top(name);
    assert.equal(/survived a whole major collection/.test(printed), name === "probes.ctf");
    const lines = printed.split("\n");
    const rows = lines.slice(lines.findIndex((line) => line.includes("sorted by size")) + 1).filter((line) => / %  /.test(line) && !line.includes("total of")).map(figures);
    await withPage(await exported(name), { fragment: "#table&metric=major&by=function" }, async (page) => {
      await page.locator("#metric option:checked").filter({ hasText: words }).waitFor({ state: "attached" });
      await settled(page);
      assert.match(await page.locator("#metric").getAttribute("title"), title);
      assert.ok(rows.length > 1);
      assert.deepEqual((await shown(page)).sort(), rows.sort());
      said[name] = rows;
      await picture(page, `survived-${name}`);
    });
  }
  // The trace is the same: the meaning differs.
  assert.notDeepEqual(said["probes.ctf"], said["service.ctf"]);
});

test("hostile names, texts and lines are text", async () => {
  await withPage(await exported("hostile-probes.ctf"), {}, async (page) => {
    await page.locator(".program").waitFor();
    await page.locator(".program summary").last().click();
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.match(await page.locator(".program").innerText(), /<img src=x onerror=window\.hacked=9>/);
    assert.match(await page.locator(".program").innerText(), /\\x1b\[31mred/);
    await picture(page, "probes-hostile");
  });
});

test("a trace without a sidecar shows neither lanes nor probes", async () => {
  for (const name of ["service.ctf", "hostile.ctf"]) {
    await withPage(await exported(name), {}, async (page) => {
      assert.equal(await page.locator(".lane, .program").count(), 0);
    });
  }
});

test("the server reads the sidecar, and one that is damaged is named", async () => {
  const folder = directory("served-probes");
  const path = `${folder}/probes.ctf`;
  copyFileSync(await trace("probes.ctf"), path);
  copyFileSync(await trace("probes.ctf.probes"), `${path}.probes`);
  const at = readFileSync(`${path}.probes`).length;
  await serve([path], async (address) => {
    await withPage(address, { requests: "own" }, async (page) => {
      await page.locator(".program").waitFor();
      assert.equal(await page.locator(".program .problem").count(), 0);
    });
    appendFileSync(`${path}.probes`, Buffer.alloc(100, 9));
    await withPage(address, { requests: "own" }, async (page) => {
      await page.locator(".program .problem").waitFor();
      assert.match(await page.locator(".program .problem").innerText(), new RegExp(`damaged at byte ${at}`));
      assert.ok((await page.locator(".probe-tree tr").count()) > 5);
      await settled(page);
    });
  });
});
