// The tab about heap snapshots: first sight, tree, tables, paths, differences, evolution, marks.
// Figures are those of `heaptap heap` and `heaptap heap-diff`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { bytesText, closeBrowser, directory, exported, fragment, json, percentText, picture, runIn, serve, settled, sized, trace, traceOf, treeItems, withPage } from "./browser.mjs";
import { accessible, within } from "./looks.mjs";

after(closeBrowser);

const NAMES = ["service-1.heap", "service-2.heap", "service-3.heap"];
const all = await exported("service.ctf", ...NAMES);
const alone = await exported("service-3.heap");
const open = (fragment, body, options = {}) => withPage(all, { fragment, ...options }, body);
const text = (page, selector) => page.locator(selector).first().innerText();
const plain = (text) => text.replace(/\s+/g, " ").trim();
const selected = (page) => page.locator('[role="treeitem"][aria-selected="true"]').innerText();
const heap = async (name, ...options) => json("heap", "--json", "-n", "0", ...options, await trace(name));

test("first sight: the last snapshot, its facts, its findings, the tree", () =>
  open("#snapshots", async (page) => {
    const figures = await heap("service-3.heap", "--earlier", await trace("service-2.heap"));
    const facts = plain(await text(page, ".snapshot-facts"));
    for (const part of ["service.exe", figures.runtime, figures.reason, "2023-11-14 22:13:39.000 UTC", `reachable ${bytesText(figures.reachable.bytes)} in ${figures.reachable.blocks.toLocaleString("en")} blocks`, `garbage not yet freed ${bytesText(figures.all.bytes - figures.reachable.bytes)}`, `outside the heap ${bytesText(figures.outside_bytes)}`]) {
      assert.ok(facts.includes(part), `no “${part}” in ${facts}`);
    }
    assert.equal(await page.getByLabel("Snapshot", { exact: true }).inputValue(), "2");
    assert.ok(figures.findings.length >= 3, "an accumulation, a finaliser cycle, memory outside the heap");
    const cards = await page.locator(".card").allInnerTexts();
    for (const [at, finding] of figures.findings.slice(0, 3).entries()) {
      for (const part of [finding.text, bytesText(finding.retained_bytes), ...finding.path]) assert.ok(cards[at].includes(part), `no “${part}” in ${cards[at]}`);
    }
    assert.ok(cards.some((card) => /▲ \+[\d.]+ MiB/.test(card)), "sessions have grown since the snapshot before");
    const [root] = await treeItems(page);
    assert.ok(root.startsWith(`all, retains ${bytesText(figures.reachable.bytes)} · 100.0 %`), root);
    await picture(page, "snapshots");
  }));

test("a finding leads to its cell; focus, Backspace, and the path of names in the address", () =>
  open("#snapshots&snapshot=2", async (page) => {
    const [finding] = (await heap("service-3.heap")).findings;
    await page.getByRole("button", { name: "show in the tree" }).first().click();
    await settled(page);
    assert.ok(plain(await text(page, ".holders .tools h2")).endsWith(bytesText(finding.retained_bytes)));
    const last = finding.path.at(-1);
    assert.ok(decodeURIComponent(await fragment(page)).includes(`/${last}`), await fragment(page));
    assert.ok((await treeItems(page)).some((item) => item.startsWith(`${last}, retains ${bytesText(finding.retained_bytes)}`)));
    await picture(page, "snapshots-focus");
    await page.keyboard.press("Backspace");
    await settled(page);
    assert.ok((await selected(page)).startsWith(`${last}, `), "one level out, the cell is selected");
    await page.getByRole("button", { name: "whole" }).click();
    await settled(page);
    assert.doesNotMatch(await fragment(page), /within=/);
  }));

test("keys move in the tree, Enter focuses, a click on the row of an ancestor returns", () =>
  open("#snapshots", async (page) => {
    await page.keyboard.press("ArrowDown");
    assert.match(await selected(page), /^globals, retains /);
    await page.keyboard.press("j");
    assert.match(await selected(page), /^Session, retains /);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await fragment(page), /within=globals\/Session/);
    const box = page.locator(".icicle-box");
    await box.scrollIntoViewIfNeeded();
    const { x, y } = await box.boundingBox();
    await page.mouse.click(x + 50, y + 10);
    await settled(page);
    assert.doesNotMatch(await fragment(page), /within=/);
    await page.mouse.dblclick(x + 50, y + 30);
    await settled(page);
    assert.match(await fragment(page), /within=globals/);
    await page.goBack();
    await settled(page);
    assert.doesNotMatch(await fragment(page), /within=/);
  }));

test("frames of a recursion are apart, and each can be opened by a link", () =>
  open("#snapshots", async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("render.cell");
    await settled(page);
    assert.match(await text(page, ".found"), /^3 cells with 7\.\d KiB, 0\.\d+ %/);
    await page.keyboard.press("Enter");
    const names = new Set();
    for (let times = 0; times < 3; times++) {
      names.add((await selected(page)).split(", retains")[0]);
      await page.keyboard.press("n");
    }
    assert.equal(names.size, 3, [...names].join(" | "));
    await page.keyboard.press("Enter");
    await settled(page);
    const link = page.url();
    const before = await text(page, ".holders .tools h2");
    await picture(page, "snapshots-search");
    await page.goto("about:blank");
    await page.goto(link);
    await settled(page);
    assert.equal(await text(page, ".holders .tools h2"), before);
    await page.keyboard.press("/");
    await page.keyboard.type("nothing like this");
    await settled(page);
    assert.match(await text(page, ".found"), /^No cell matches/);
  }));

test("every table has the rows of the command line", () =>
  open("#snapshots&part=table", async (page) => {
    const chooser = page.getByLabel("What a row of the snapshot is");
    const kinds = await chooser.locator("option").allInnerTexts();
    assert.deepEqual(kinds, ["kind of root", "module", "variable", "thread", "stack frame", "block", "custom block"]);
    const options = { "kind of root": "kind", "stack frame": "frame", "custom block": "custom" };
    for (const kind of kinds) {
      await chooser.selectOption(kind);
      await settled(page);
      const { table, reachable } = await heap("service-3.heap", "--by", options[kind] ?? kind);
      const rows = await page.locator("tbody tr").allInnerTexts();
      assert.ok(rows.length > 0 && rows.length <= table.rows.length, kind);
      for (const [at, shown] of rows.entries()) {
        const row = table.rows[at];
        const expected = [bytesText(row.reachable_bytes), bytesText(row.exclusive_bytes), bytesText(row.first_reached.bytes), percentText(row.first_reached.bytes / reachable.bytes)].join(" ");
        assert.ok(plain(shown).startsWith(expected), `${kind}: ${plain(shown)} is not ${expected} ${row.name}`);
        assert.ok(shown.includes(row.name), `${kind}: ${shown} is not ${row.name}`);
      }
    }
    await chooser.selectOption("variable");
    await settled(page);
    await picture(page, "snapshots-table");
  }));

test("a table is sorted by its columns, and keys move the open row", () =>
  open("#snapshots&part=table&table=block", async (page) => {
    const column = async (at) => {
      const cells = await page.locator(`tbody td:nth-child(${at})`).allInnerTexts();
      const units = { bytes: 1, KiB: 1024, MiB: 1024 ** 2 };
      return cells.map((cell) => { const [, number, unit] = /^([\d.]+) (\w+)/.exec(cell); return Number(number) * units[unit]; });
    };
    for (const [at, name] of [[1, "reachable"], [2, "exclusive"], [3, "first"], [4, "outside"]]) {
      await page.getByRole("button", { name: new RegExp(`^${name}`) }).click();
      await settled(page);
      const down = await column(at);
      assert.deepEqual(down, down.toSorted((a, b) => b - a), name);
      assert.equal(await page.locator('th[aria-sort="descending"]').innerText(), `${name} ▾`);
      await page.getByRole("button", { name: new RegExp(`^${name}`) }).click();
      await settled(page);
      assert.deepEqual(await column(at), down.toReversed().toSorted((a, b) => a - b), name);
    }
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await settled(page);
    assert.equal(await text(page, ".panel-name"), await page.locator("tbody tr").nth(1).locator("td.name").innerText());
    await page.keyboard.press("Backspace");
    await settled(page);
    assert.equal(await page.locator(".panel").count(), 0);
  }));

test("a row of blocks opens the path to the one that retains most", () =>
  open("#snapshots&part=table&table=block", async (page) => {
    const { table } = await heap("service-3.heap", "--by", "block");
    const row = table.rows.find(({ name }) => name.includes("string"));
    await page.locator("tbody tr", { hasText: row.name }).first().click();
    await settled(page);
    const panel = plain(await text(page, ".panel"));
    const path = await json("heap", "--json", "--path", `^${row.name.replace(/\W/g, "\\$&")}$`, await trace("service-3.heap"));
    assert.ok(panel.includes("Shortest path to it"), panel);
    assert.ok(panel.includes(`The one that retains most is ${path.block}`), panel);
    for (const step of [...path.shortest, ...path.dominators, ...path.holders]) assert.ok(panel.includes(plain(step)), `no ${step} in ${panel}`);
    assert.match(panel, /Without any of these it would go.*Cache, field 3|Holders that reach it.*Cache, field 3/);
    assert.match(panel, /Server\.serve/, "the stack reaches the cache too");
    await picture(page, "snapshots-path");
    await page.getByRole("button", { name: "show in the tree" }).click();
    await settled(page);
    assert.ok((await treeItems(page)).some((item) => item.startsWith(row.name)));
    await page.getByRole("button", { name: "its row" }).click();
    await settled(page);
    assert.equal(await text(page, ".panel-name"), row.name);
  }));

test("the difference from the snapshot before is that of heap-diff", () =>
  open("#snapshots&snapshot=1&part=growth", async (page) => {
    for (const by of ["variable", "block", "set"]) {
      await page.getByLabel("What is compared").selectOption(by);
      await settled(page);
      const diff = await json("heap-diff", "--json", "-n", "0", await trace("service-1.heap"), await trace("service-2.heap"));
      const expected = diff.tables.find((table) => table.by === by).rows;
      const rows = await page.locator("tbody tr").allInnerTexts();
      assert.ok(rows.length > 0 && rows.length <= expected.length);
      for (const [at, shown] of rows.entries()) {
        const { name, before, after, growth_bytes: growth, change } = expected[at];
        const words = `${bytesText(before.bytes)} ${bytesText(after.bytes)} ${growth > 0 ? "▲ +" : "▼ −"}${bytesText(Math.abs(growth))}`;
        assert.ok(plain(shown).startsWith(words) && shown.includes(name), `${by}: ${plain(shown)} is not ${words} ${name}`);
        assert.equal(/\bnew$/.test(shown), change === "new", shown);
      }
    }
    await page.getByLabel("What is compared").selectOption("variable");
    await settled(page);
    assert.match(await page.locator("tbody").innerText(), /Metrics, field 1\s*new/);
    await picture(page, "snapshots-difference");
  }));

test("any two snapshots are compared as heap-diff does, and the link keeps which", () =>
  open("#snapshots&snapshot=2&part=growth", async (page) => {
    const compared = async (before, after) => {
      const diff = await json("heap-diff", "--json", "-n", "0", await trace(NAMES[before]), await trace(NAMES[after]));
      for (const by of ["variable", "block", "set"]) {
        await page.getByLabel("What is compared").selectOption(by);
        await settled(page);
        const { rows } = diff.tables.find((table) => table.by === by);
        const shown = (await page.locator("tbody tr").allInnerTexts()).map(plain);
        assert.ok(shown.length > 0 && shown.length === Math.min(32, rows.length), by);
        for (const [at, { name, before, after, growth_bytes: growth }] of rows.slice(0, 32).entries()) {
          const words = `${bytesText(before.bytes)} ${bytesText(after.bytes)} ${growth > 0 ? "▲ +" : "▼ −"}${bytesText(Math.abs(growth))}`;
          assert.ok(shown[at].startsWith(words) && shown[at].includes(plain(name)), `${by}: ${shown[at]} is not ${words} ${name}`);
        }
      }
    };
    const choice = page.getByLabel("Compared with");
    assert.equal(await choice.inputValue(), "1", "the one before");
    await compared(1, 2);
    await choice.selectOption("0");
    await settled(page);
    assert.match(await fragment(page), /since=0/);
    await compared(0, 2);
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await settled(page);
    assert.equal(await page.getByLabel("Compared with").inputValue(), "0");
    // The later one is the one that is compared, whichever is shown.
    await page.evaluate(() => { location.hash = "#snapshots&snapshot=0&since=2&part=growth"; });
    await settled(page);
    await compared(0, 2);
    await page.evaluate(() => { location.hash = "#snapshots&snapshot=0&part=growth"; });
    await settled(page);
    await compared(0, 1);
  }));

test("of many snapshots, the page says which pairs it does not have", async () => {
  const place = directory("many");
  const files = [];
  for (let number = 0; number < 14; number++) {
    const bytes = readFileSync(await trace(NAMES[number % 3]));
    files.push(traceOf(`many/${String(number).padStart(2, "0")}.heap`, bytes));
  }
  assert.ok(place);
  const page = await exported(...files);
  await withPage(page, { fragment: "#snapshots&snapshot=9&since=4&part=growth" }, async (page) => {
    assert.match(await text(page, ".diff"), /does not compare these two/);
    assert.match(await text(page, ".diff"), /heaptap heap-diff \S+\.heap \S+\.heap/);
    await page.getByLabel("Compared with").selectOption("0");
    await settled(page);
    assert.doesNotMatch(await text(page, ".diff"), /does not compare/);
  });
});

test("below the pointer, the legend has the sizes of the snapshot that is nearest", () =>
  open("#snapshots&snapshot=2", async (page) => {
    const legend = () => text(page, ".over-time .legend");
    const last = await legend();
    const box = await page.locator(".evolution-plot").boundingBox();
    await page.mouse.move(box.x + 3, box.y + 60);
    await page.waitForFunction((last) => document.querySelector(".over-time .legend").innerText !== last, last);
    assert.match(await legend(), /snapshot 1/);
    await page.mouse.move(2, 2);
    await page.waitForFunction((last) => document.querySelector(".over-time .legend").innerText === last, last);
  }));

test("over time: the eight biggest rows, a button for each snapshot", () =>
  open("#snapshots", async (page) => {
    const figures = await Promise.all(NAMES.map((name) => heap(name, "--by", "module")));
    assert.equal(await page.locator(".evolution-mark").count(), 3);
    assert.equal(await page.locator(".evolution-plot polygon").count(), await page.locator(".over-time .legend li").count());
    for (const [at, { table, reachable }] of figures.entries()) {
      await page.locator(".evolution-mark").nth(at).click();
      await settled(page);
      assert.match(await fragment(page), new RegExp(`snapshot=${at}`));
      const legend = (await page.locator(".over-time .legend li").allInnerTexts()).map(plain);
      const biggest = (rows) => rows.toSorted((a, b) => b.first_reached.bytes - a.first_reached.bytes).slice(0, 8);
      // The same rows in each snapshot: those that are the biggest in any, which here is the last.
      for (const [place, { name }] of biggest(figures.at(-1).table.rows).entries()) {
        const size = table.rows.find((row) => row.name === name)?.first_reached.bytes ?? 0;
        assert.ok(legend[place].startsWith(`${name} ${bytesText(size)}`), `${legend[place]} is not ${name} ${bytesText(size)}`);
      }
      const others = reachable.bytes - biggest(figures.at(-1).table.rows).reduce((sum, { name }) => sum + (table.rows.find((row) => row.name === name)?.first_reached.bytes ?? 0), 0);
      assert.ok(legend[8].startsWith(`others ${bytesText(others)}`), `${legend[8]} is not others ${bytesText(others)}`);
      assert.ok(plain(await text(page, ".snapshot-facts")).includes(`reachable ${bytesText(reachable.bytes)}`));
    }
    await page.getByLabel("Stack the snapshots by").selectOption("block");
    await settled(page);
    assert.match(await fragment(page), /stack=block/);
    assert.ok((await page.locator(".over-time .legend li").count()) <= 9);
    await picture(page, "snapshots-evolution");
    await page.goBack();
    await settled(page);
    assert.equal(await page.getByLabel("Stack the snapshots by").inputValue(), "module");
    await page.goBack();
    await settled(page);
    assert.match(await fragment(page), /snapshot=1/);
  }));

test("marks on the time line lead to their snapshot, and it leads back to its time", () =>
  open("", async (page) => {
    const marks = page.locator(".snapshot-mark");
    assert.equal(await marks.count(), 3);
    const brush = await page.locator(".brush").boundingBox();
    for (const [at, seconds] of [5, 10, 19].entries()) {
      const box = await marks.nth(at).boundingBox();
      assert.ok(Math.abs(box.x + box.width / 2 - (brush.x + (brush.width * seconds) / 20)) < 4, `mark ${at} is at ${seconds} s`);
    }
    await picture(page, "snapshots-marks");
    await page.keyboard.press("3");
    await settled(page);
    assert.equal(await marks.count(), 3, "on the time line above the table too");
    await marks.nth(1).click();
    await settled(page);
    assert.match(await fragment(page), /^#snapshots&.*snapshot=1/);
    assert.equal(await page.locator(".chip").count(), 0, "no time was chosen");
    await page.getByRole("button", { name: /10\.0 s into service\.ctf/ }).click();
    await settled(page);
    assert.match(await fragment(page), /^#overview&metric=at&at=10000000/);
    await page.goBack();
    await page.goBack();
    await settled(page);
    assert.match(await fragment(page), /^#table/);
  }));

test("where it was allocated is what `heap --by site` prints, and leads to the trace", () =>
  open("#snapshots&part=sites", async (page) => {
    const figures = await json("heap", "--json", "--by", "site", "-n", "0", await trace("service-3.heap"));
    const { exact_bytes: exact, estimated, rows } = figures;
    const sentence = plain(await text(page, ".rows-plain p"));
    assert.ok(sentence.includes(bytesText(exact)) && sentence.includes(sized(estimated)), sentence);
    const shown = await page.locator("tbody tr").allInnerTexts();
    assert.equal(shown.length, rows.length);
    for (const [at, row] of rows.entries()) {
      assert.ok(plain(shown[at]).startsWith(sized(row.size)), `${shown[at]} is not ${sized(row.size)}`);
      assert.ok(shown[at].includes(`${row.site.file}:${row.site.line}`) && shown[at].includes(row.holder), shown[at]);
    }
    await picture(page, "snapshots-sites");
    await page.locator("tbody button").first().click();
    await settled(page);
    assert.match(await fragment(page), /^#table&metric=at&at=19000000&by=location&row=Session\.remember/);
    assert.match(await text(page, ".panel"), /Callers/);
  }));

test("a copied link opens the same view; Back returns", async () => {
  let link;
  await open("#snapshots", async (page) => {
    await page.getByLabel("Snapshot", { exact: true }).selectOption("0");
    await page.getByRole("button", { name: "Tables" }).click();
    await page.getByLabel("What a row of the snapshot is").selectOption("module");
    await page.locator("tbody tr", { hasText: "Session" }).click();
    await page.getByRole("button", { name: "exclusive" }).click();
    await settled(page);
    await page.keyboard.press("c");
    await page.getByRole("button", { name: "copied" }).waitFor();
    link = await page.evaluate(() => navigator.clipboard.readText());
    await page.goBack();
    await page.goBack();
    await settled(page);
    assert.match(await fragment(page), /^#snapshots&snapshot=0$/);
  }, { permissions: ["clipboard-read", "clipboard-write"] });
  await withPage(link, {}, async (page) => {
    assert.match(await fragment(page), /^#snapshots&snapshot=0&part=table&table=module&sort=exclusive&held=Session$/);
    assert.equal(await text(page, ".panel-name"), "Session");
    assert.equal(await page.locator('th[aria-sort="descending"]').innerText(), "exclusive ▾");
  });
});

test("the tab is there only with snapshots, and key 7 opens it", async () => {
  await open("", async (page) => {
    await page.keyboard.press("7");
    assert.match(await fragment(page), /^#snapshots/);
    // Keys about the trace do nothing here.
    for (const key of ["m", "i", "p", "f"]) await page.keyboard.press(key);
    assert.match(await fragment(page), /^#snapshots$/);
    await page.keyboard.press("2");
    assert.match(await fragment(page), /^#flame/);
    await settled(page);
  });
  await withPage(await exported("service.ctf"), { fragment: "#snapshots" }, async (page) => {
    assert.equal(await page.locator(".tabs [aria-current]").innerText(), "Overview");
    await page.keyboard.press("7");
    assert.equal(await page.locator(".tabs a").count(), 7, "all others");
    assert.equal(await page.locator(".snapshot-mark").count(), 0);
    await settled(page);
  });
});

test("snapshots without a trace are a page of their own", async () =>
  withPage(alone, {}, async (page) => {
    assert.deepEqual(await page.locator(".tabs a").allInnerTexts(), ["Snapshots"]);
    assert.equal(await page.locator(".evolution").count(), 0, "one snapshot has no evolution");
    assert.ok((await treeItems(page)).length > 1);
    for (const key of ["1", "2", "7"]) await page.keyboard.press(key);
    await settled(page);
    assert.equal(await page.locator(".tabs [aria-current]").innerText(), "Snapshots");
    await picture(page, "snapshots-alone");
  }));

test("a snapshot that cannot be read is named, and the others are shown", async () => {
  const whole = readFileSync(await trace("service-1.heap"));
  const cut = traceOf("cut.heap", whole.subarray(0, whole.length >> 1));
  await withPage(await exported("service-2.heap", cut), {}, async (page) => {
    assert.match(await text(page, ".problem"), /cut\.heap/);
    assert.ok((await treeItems(page)).length > 1);
    await picture(page, "snapshots-cut");
  });
});

test("names that are HTML and script stay text", async () =>
  withPage(await exported("hostile.heap", "service-1.heap"), {}, async (page) => {
    for (const part of ["", "&part=table", "&part=table&table=block", "&part=table&table=module", "&part=table&table=stack%20frame", "&part=table&table=thread", "&search=script", "&snapshot=1&part=growth"]) {
      await page.evaluate((fragment) => { location.hash = fragment; }, `snapshots&snapshot=0${part}`);
      await settled(page);
      if (await page.locator("tbody tr").count()) await page.locator("tbody tr").first().click();
      await settled(page);
      await picture(page, `snapshots-hostile-${part.replace(/\W+/g, "-")}`);
    }
    await page.evaluate(() => { location.hash = "snapshots&snapshot=0&part=tree"; });
    await settled(page);
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await settled(page);
    const box = page.locator(".icicle-box");
    await box.scrollIntoViewIfNeeded();
    const { x, y } = await box.boundingBox();
    await page.mouse.move(x + 30, y + 50);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("#page script, #page iframe, #page img, #page svg[onload]").count(), 0);
    assert.ok(!/[\u202e\u0007\u001b]/.test(await page.locator("#page").innerText()));
    assert.ok((await page.locator("#page").innerText()).includes("<script>window.hacked=1</script>"));
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await settled(page);
    assert.match(await fragment(page), /within=/);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
  }));

test("heaptap serve shows them too", async () =>
  serve([await trace("service.ctf"), ...(await Promise.all(NAMES.map(trace)))], (address) =>
    withPage(address, { fragment: "#snapshots", requests: "own" }, async (page) => {
      assert.equal(await page.locator(".evolution-mark").count(), 3);
      await page.keyboard.press("1");
      await settled(page);
      assert.equal(await page.locator(".snapshot-mark").count(), 3);
    })));

const PROGRAM = `
let kept : (int * string) list ref = ref []
let () =
  for i = 1 to 40_000 do
    kept := (i, String.make 40 'x') :: !kept;
    if i mod 10_000 = 0 then Gc.full_major ()
  done;
  print_int (List.length !kept)
`;
const hasOcaml = spawnSync("ocamlfind", ["ocamlopt", "-version"]).status === 0;

test("snapshots that an OCaml program took while it was traced", { skip: hasOcaml ? false : "there is no OCaml compiler" }, async () => {
  const work = directory("kept");
  writeFileSync(`${work}/kept.ml`, PROGRAM);
  await runIn(work, "ocamlfind", "ocamlopt", "-g", "kept.ml", "-o", "kept");
  await runIn(work, "heaptap", "run", "-r", "1e-2", "--snapshot", "major:1", "--snapshot", "exit", "--snapshot-file", `${work}/kept-%n.heap`, "-o", `${work}/kept.ctf`, "--", "./kept");
  const last = `${work}/kept-2.heap`;
  const { findings: [finding], reachable } = await json("heap", "--json", last);
  await withPage(await exported(`${work}/kept.ctf`, `${work}/kept-1.heap`, last), { fragment: "#snapshots" }, async (page) => {
    assert.equal(finding.kind, "accumulation");
    assert.equal(finding.path[0], "Kept.kept : (int * string) list ref", "named by the files beside the program");
    const card = await text(page, ".card");
    for (const part of [...finding.path, finding.elements.toLocaleString("en"), bytesText(finding.retained_bytes)]) assert.ok(card.includes(part), `no ${part} in ${card}`);
    assert.ok((await treeItems(page))[0].startsWith(`all, retains ${bytesText(reachable.bytes)}`));
    assert.equal(await page.locator(".evolution-mark").count(), 2);
    await page.getByRole("button", { name: "Where it was allocated" }).click();
    await settled(page);
    assert.match(await page.locator("tbody").innerText(), /kept\.ml:5:/);
    await picture(page, "snapshots-ocaml");
    await page.keyboard.press("1");
    await settled(page);
    assert.ok((await page.locator(".snapshot-mark").count()) >= 1, "also of the snapshot at exit, after the last event");
    assert.match(await page.locator(".snapshot-mark").last().getAttribute("title"), /kept-2\.heap/);
  });
});

const VIEWS = ["", "&snapshot=0", "&search=session", "&part=table", "&part=table&table=block&held=block%20of%2012%20words&sort=exclusive", "&snapshot=1&part=growth", "&snapshot=0&since=2&part=growth", "&part=sites", "&stack=block"];
const VIEWED = VIEWS.map((part) => `#snapshots${part}`);

for (const theme of ["light", "dark"]) {
  test(`axe-core has no finding in the ${theme} theme`, () => accessible(all, ["#overview", ...VIEWED], theme, `snapshots-${theme}`));
}

for (const [width, height] of [[360, 740], [820, 1100], [1920, 1080]]) {
  test(`nothing overflows at ${width} pixels`, () => within(all, VIEWED, { width, height }, `snapshots-${width}`));
}
