// The overview opens with what `heaptap doctor` says of the same files: in a page that is written, one that is served, and
// one that follows a program.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { bytesText, closeBrowser, directory, exported, exportedWith, fragment, picture, runIn, serve, settled, startServer, trace, withPage } from "./browser.mjs";
import { accessible, within } from "./looks.mjs";

after(closeBrowser);

const NAMES = ["service-1.heap", "service-2.heap", "service-3.heap"];
const page = await exported("service.ctf", ...NAMES);
const plain = (text) => text.replace(/\s+/g, " ").trim();
const text = async (page, selector) => plain(await page.locator(selector).first().innerText());
const unfold = (page) => page.locator(".diagnosis-head button").click();

/** What the doctor prints, whatever it finds. */
async function doctor(...names) {
  const files = await Promise.all(names.map(trace));
  const { stdout } = await runIn(directory("doctor"), "heaptap", "doctor", "--json", ...files).catch((reason) => reason);
  return JSON.parse(stdout);
}

/** The panel says what the doctor does. */
async function says(page, diagnosis) {
  await page.locator(".diagnosis[aria-busy=false]").waitFor();
  const { verdict, findings, examined } = diagnosis;
  const head = await text(page, ".diagnosis-head");
  assert.ok(head.toLowerCase().includes(plain(verdict.sentence).toLowerCase()), `no “${verdict.sentence}” in ${head}`);
  if (verdict.outcome === "found") assert.ok(head.startsWith(findings[0].certainty), head);
  if (verdict.command) assert.equal(await text(page, ".diagnosis code"), verdict.command);
  await unfold(page);
  const cards = (await page.locator(".finding").allInnerTexts()).map(plain);
  assert.equal(cards.length, findings.length + 1, "and what was looked at");
  for (const [at, { sentence, holder, sites, advice, bytes_per_second: rate }] of findings.entries()) {
    const parts = [at > 0 || !verdict.sentence.includes(sentence) ? sentence : "", advice ?? "", rate === null ? "" : `${bytesText(rate)} a second`];
    if (holder) parts.push(holder.name, ...holder.path, ...holder.sizes.map(bytesText).slice(0, 3));
    for (const { site } of sites) parts.push(site.name, ...(site.file ? [`${site.file}:${site.line}`] : []));
    for (const part of parts) assert.ok(cards[at].includes(plain(part)), `no “${part}” in ${cards[at]}`);
  }
  for (const { file, reachable_bytes: reachable } of examined.snapshots) {
    assert.ok(cards.at(-1).includes(`${file.split("/").at(-1)}`) && cards.at(-1).includes(bytesText(reachable)), cards.at(-1));
  }
}

test("a page opens with the verdict of the doctor, and unfolds to all findings", async () => {
  const said = await doctor("service.ctf", ...NAMES);
  assert.equal(said.findings[0].holder?.sizes.length, 3, "a session table that grows from snapshot to snapshot");
  assert.ok(said.findings[0].holder.path.length > 1 && said.findings[0].sites.length > 0, JSON.stringify(said.findings[0]));
  await withPage(page, {}, async (page) => {
    const first = await page.locator("main section").first().getAttribute("aria-label");
    assert.equal(first, "Diagnosis");
    assert.equal(await page.locator(".finding").count(), 0, "one glance");
    await picture(page, "diagnosis");
    await says(page, said);
    await picture(page, "diagnosis-open");
  });
});

test("its sites lead to the source and to the calls, its holder to what it holds", () =>
  withPage(page, {}, async (page) => {
    await unfold(page);
    const site = page.locator(".finding li button").first();
    const place = await site.innerText();
    await site.focus();
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await fragment(page), /^#source&/);
    const [file, line] = place.split(":");
    const address = decodeURIComponent(await fragment(page));
    assert.ok(address.includes(`open=${file}`) && address.includes(`line=${line}`), address);
    await page.goBack();
    await settled(page);
    await unfold(page);
    const holder = page.locator(".finding dd > button").first();
    const name = plain(await holder.innerText());
    await holder.click();
    await settled(page);
    assert.match(await fragment(page), /^#snapshots&snapshot=2/);
    assert.ok((await text(page, ".snapshots")).includes(name));
    await page.goBack();
    await settled(page);
    await unfold(page);
    await page.getByRole("button", { name: "call paths" }).first().click();
    await settled(page);
    assert.match(await fragment(page), /^#flame&metric=live.*function=/);
  }));

test("with filters it says that it is of the whole run, and stays as it is", () =>
  withPage(page, {}, async (page) => {
    const before = await text(page, ".diagnosis-verdict");
    assert.match(await text(page, ".diagnosis-head"), /of the whole run/);
    for (const filter of ["#overview&function=Json", "#overview&time=1000000-9000000"]) {
      await page.evaluate((hash) => { location.hash = hash; }, filter);
      await settled(page);
      assert.match(await text(page, ".diagnosis-head"), /of the whole run, whatever the filters select/);
      assert.equal(await text(page, ".diagnosis-verdict"), before);
    }
  }));

test("snapshots without a trace have theirs above them; a page of selected blocks has none", async () => {
  await withPage(await exported(...NAMES), {}, async (page) => says(page, await doctor(...NAMES)));
  await withPage(await exportedWith(["--filter", "Json"], "service.ctf"), {}, async (page) => {
    assert.equal(await page.locator(".diagnosis").count(), 0);
  });
});

test("where it cannot tell, the page has the command that would", async () => {
  const said = await doctor("cells.ctf");
  assert.equal(said.verdict.outcome, "cannot_tell");
  await withPage(await exported("cells.ctf"), {}, async (page) => {
    await says(page, said);
    await picture(page, "diagnosis-undecided");
  });
});

test("a server makes it after the first figures", async () => {
  const files = await Promise.all(["service.ctf", ...NAMES].map(trace));
  const said = await doctor("service.ctf", ...NAMES);
  await serve(files, (address) => withPage(address, { requests: "own" }, async (page) => says(page, said)));
});

test("what is sure is said with that", async () => {
  const said = await doctor("service.ctf", ...NAMES);
  const [first] = said.findings;
  const diagnosis = { ...said, findings: [{ ...first, certainty: "sure", is_problem: true, growth_error: 0.1 * first.bytes_per_second, full_in_us: 9e7 }], verdict: { outcome: "found", sentence: first.sentence, command: null } };
  const before = (page) => page.route(/\/diagnosis\//, (route) => route.fulfill({ json: { state: "ready", so_far: true, diagnosis } }));
  await serve([await trace("service.ctf")], (address) =>
    withPage(address, { requests: "own", before }, async (page) => {
      await says(page, diagnosis);
      assert.match(await text(page, ".diagnosis-head"), /so far, after 20\.0 s/);
      assert.match(await text(page, ".finding"), /a second ± 10\.0 %.*full in about 1\.5 min/);
      await picture(page, "diagnosis-sure");
    }));
});

test("while it is made the page says so, and all else is there", async () => {
  let isMade = false;
  const before = (page) => page.route(/\/diagnosis\//, (route) => (isMade ? route.continue() : route.fulfill({ json: { state: "waiting" } })));
  await serve([await trace("service.ctf")], (address) =>
    withPage(address, { requests: "own", before }, async (page) => {
      assert.match(await text(page, ".diagnosis"), /being read/);
      assert.ok((await page.locator(".legend li").count()) > 3);
      isMade = true;
      await page.locator(".diagnosis-verdict").waitFor();
    }));
});

test("of a pipe there is none, and the page says why", async () => {
  const server = await startServer(["-"], openSync(await trace("service.ctf"), "r"));
  try {
    await withPage(server.address, { requests: "own" }, async (page) => {
      await page.locator(".diagnosis", { hasText: "There is no diagnosis" }).waitFor();
      assert.match(await text(page, ".diagnosis"), /a pipe cannot be read again/);
      assert.ok((await page.locator(".legend li").count()) > 3, "nothing else breaks");
      await picture(page, "diagnosis-none");
    });
  } finally {
    await server.stop();
  }
});

test("of a program that runs it is what is known so far, and at its end that of the whole run", async () => {
  const path = `${directory("diagnosed")}/grows.ctf`;
  const bytes = readFileSync(await trace("service.ctf"));
  writeFileSync(path, bytes.subarray(0, bytes.length / 2));
  const file = openSync(path, "r+");
  const writer = spawn("sleep", ["600"], { stdio: ["ignore", "ignore", "ignore", file] });
  closeSync(file);
  const server = await startServer(["--live", String(writer.pid)]);
  try {
    await withPage(server.address, { requests: "own" }, async (page) => {
      const head = page.locator(".diagnosis-head");
      await head.filter({ hasText: /so far, after [\d.]+ (s|min)/ }).waitFor();
      await picture(page, "diagnosis-live");
      writeFileSync(path, bytes);
      writer.kill();
      await head.filter({ hasText: "of the whole run" }).waitFor();
    });
  } finally {
    writer.kill();
    await server.stop();
  }
});

test("hostile names stay text", async () => {
  const said = await doctor("hostile.ctf", "hostile.heap");
  for (const names of [["hostile.ctf", "hostile.heap"], ["hostile.heap"]]) {
    await withPage(await exported(...names), {}, async (page) => {
      await page.locator(".diagnosis-verdict").waitFor();
      await unfold(page);
      assert.ok((await text(page, ".diagnosis")).length > 20);
      assert.equal(await page.locator(".diagnosis :is(script, img, iframe, style, svg)").count(), 0);
      assert.equal(await page.evaluate(() => window.hacked), undefined);
      assert.doesNotMatch(await page.locator(".diagnosis").innerText(), /[\u0000-\u0008\u000e-\u001f\u202e\u2066]/u);
      await picture(page, `diagnosis-hostile-${names.length}`);
    });
  }
  // A document in which every text is hostile.
  const evil = "<img src=x onerror='window.hacked=1'></script><script>window.hacked=1</script>\u202e\u001b[2J";
  const hostile = JSON.parse(JSON.stringify(said), (key, value) => (typeof value === "string" && !["outcome", "kind", "certainty", "pace"].includes(key) ? evil : value));
  hostile.verdict.outcome = "cannot_tell";
  hostile.verdict.command = evil;
  hostile.remarks = [evil];
  const site = { name: evil, file: evil, line: 3 };
  hostile.findings = [{
    kind: "leak", certainty: "possible", is_problem: true, sentence: evil, bytes: 1, bytes_per_second: 2, growth_error: 1, since_us: 1, full_in_us: 1e9, advice: evil,
    holder: { name: evil, pace: evil, before_bytes: 1, after_bytes: 2, after_outside_bytes: 3, share_of_growth: 1, sizes: [1, 2], path: [evil, evil], elements: 3 },
    sites: [{ site, via: site, called_from: [site], size: { bytes: 1, error: null, low: 0, high: 2 }, gained_bytes: 1, oldest_us: 1, share: 1, source: { first: 2, lines: [evil] } }],
  }];
  const before = (page) => page.route(/\/diagnosis\//, (route) => route.fulfill({ json: { state: "ready", so_far: false, diagnosis: hostile } }));
  await serve([await trace("service.ctf")], (address) =>
    withPage(address, { requests: "own", before }, async (page) => {
      await page.locator(".diagnosis-verdict").waitFor();
      await unfold(page);
      const shown = await page.locator(".diagnosis").innerText();
      assert.ok(shown.includes("<img src=x") && shown.includes("\\u{202e}\\x1b[2J"), shown);
      assert.equal(await page.locator(".diagnosis :is(script, img)").count(), 0);
      assert.equal(await page.evaluate(() => window.hacked), undefined);
    }));
});

test("it is accessible, in both themes, and fits a narrow screen", async () => {
  for (const theme of ["light", "dark"]) {
    await accessible(page, ["#overview"], theme, `diagnosis-${theme}`, unfold);
  }
  await within(page, ["#overview"], { width: 400, height: 800, prepare: unfold }, "diagnosis-narrow");
});
