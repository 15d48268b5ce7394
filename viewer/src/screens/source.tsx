// Source: the lines of a file that allocate. The text comes from `heaptap serve --source-root`, or
// is in a page that was written `--with-source`; otherwise there are the lines and their functions.

import { useEffect, useState } from "preact/hooks";
import type { Site, SourceLine, SourceLines } from "../query/types";
import { Message, Problem } from "../parts/messages";
import { EndOf } from "../parts/end-of";
import { ErrorBar, Sized, SizeCells } from "../parts/numbers";
import { sourceLines } from "../query/page-data";
import { meaning } from "../text/glossary";
import { shortFile, visible } from "../text/sites";
import { useQuery } from "../view/ask";
import { common } from "../view/request";
import { change, config, view } from "../view/store";
import { useRowKeys } from "./table";

export function Source() {
  const current = view.value;
  const files = useQuery("files", "report", { ...common(current), by: "file", top: 300 });
  const rows = (files.answer?.table.rows ?? []).filter(({ file, name }) => (file ?? name) !== "");
  const file = current.file || (rows[0] ? fileOf(rows[0]) : "");
  const lines = useQuery("lines", "source", file === "" ? null : { ...common(current), file });
  useRowKeys(rows, rows.find((row) => fileOf(row) === file) ?? null, (row) => change({ file: fileOf(row), line: 0 }, "within"));
  if (files.error) return <Problem text={files.error} />;
  if (files.answer && rows.length === 0) return <Message title="The trace names no source file"><p>Build the program with debug information (<code>-g</code>), or keep its symbols.</p></Message>;
  return (
    <div class="source">
      <nav class="files" aria-label="Files">
        {rows.map((row) => {
          const name = fileOf(row);
          return (
            <button type="button" key={name} class="plain file" aria-current={name === file ? "true" : undefined} title={name} onClick={() => change({ file: name, line: 0 })}>
              <span class="file-name">{shortFile(visible(name), 34)}</span><Sized size={row} />
            </button>
          );
        })}
      </nav>
      <section class={`lines${lines.stale ? " stale" : ""}`} aria-label={file}>
        <div class="tools">
          <h2 class="break">{visible(file)}</h2>
          {lines.answer && <span class="tools-right"><span class="apart">self <Sized size={lines.answer.sum} /></span>{lines.answer.total && <span>total <Sized size={lines.answer.total} /></span>}</span>}
        </div>
        {lines.error && <Problem text={lines.error} />}
        {lines.answer?.no_totals && <p class="faint prose">No totals: {lines.answer.no_totals}.</p>}
        {lines.answer && lines.answer.file === file && <Lines lines={lines.answer} />}
      </section>
    </div>
  );
}

function fileOf({ name, file }: Site): string {
  return file ?? name;
}

function Lines({ lines }: { lines: SourceLines }) {
  const { trace, line: wanted } = view.value;
  const [text, setText] = useState<{ file: string; lines: string[] } | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setProblem("");
    if (!config.source) return;
    let current = true;
    sourceLines(config.mode, trace, lines.file).then(
      (read) => { if (current) setText({ file: lines.file, lines: read }); },
      (reason: unknown) => { if (current) setProblem(reason instanceof Error ? reason.message : String(reason)); },
    );
    return () => { current = false; };
  }, [trace, lines.file]);
  const shown = text && text.file === lines.file ? text.lines : null;
  const hottest = hottestLine(lines);
  const at = wanted || hottest;
  useEffect(() => {
    showLine(document.querySelector<HTMLElement>(".lines tr.wanted") ?? document.querySelector<HTMLElement>(".lines tr.hottest"));
  }, [at, shown, lines.file]);
  const byLine = new Map(lines.lines.map((each) => [each.line, each]));
  const hasTotals = lines.total !== null;
  const most = Math.max(1, ...lines.lines.map(({ sum, total }) => (hasTotals ? total?.high : sum.high) ?? 0));
  const numbers = shown ? shown.map((_, at) => at + 1) : [...byLine.keys()].sort((a, b) => a - b);
  return (
    <>
      {problem && <Problem text={problem} />}
      {!shown && !problem && <p class="faint prose">The page has no text of this file. <code>heaptap serve --source-root DIR</code> shows it{config.mode === "serve" ? "." : <>, and <code>heaptap export --with-source --source-root DIR</code> puts it into the page.</>}</p>}
      <div class="table-box" tabIndex={0} role="region" aria-label="Lines">
        <table class="code">
          <thead><tr>
            <th class="num" scope="col" title={meaning("self")}>self</th><th class="num err" scope="col" title={meaning("error")}>error</th>
            {hasTotals && <><th class="num" scope="col" title={meaning("total")}>total</th><th class="num err wide-only" scope="col">error</th></>}
            <th class="bar-col" scope="col" title="With its 95 % interval">{hasTotals ? "total" : "self"}, 95 %</th>
            <th class="num" scope="col">line</th><th scope="col">{shown ? "text" : "function"}</th>
          </tr></thead>
          <tbody>
            {numbers.map((number) => {
              const known = byLine.get(number);
              const bar = known && (hasTotals ? known.total : known.sum);
              return (
                <tr class={`${number === wanted ? "wanted" : ""}${known ? " hot" : ""}${number === hottest ? " hottest" : ""}`}>
                  {known && known.sum.samples > 0 ? <SizeCells size={known.sum} /> : <><td class="num" /><td class="num err" /></>}
                  {hasTotals && (known?.total ? <SizeCells size={known.total} errorLook="wide-only" /> : <><td class="num" /><td class="num err wide-only" /></>)}
                  <td class="bar-col">{bar && <ErrorBar size={bar} most={most} />}</td>
                  <td class="num faint">{number}</td>
                  <td class="text" title={known?.functions.join(", ")}>{shown ? shown[number - 1] : known && <EndOf text={known.functions.map(visible).join(", ")} />}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** The line that allocates most itself; if none does, the one that has most with all that it calls. */
function hottestLine({ lines }: SourceLines): number {
  const heat = ({ sum, total }: SourceLine): [number, number] => [sum.samples, total?.samples ?? 0];
  let [hottest, most]: [number, [number, number]] = [0, [0, 0]];
  for (const line of lines) {
    const [own, total] = heat(line);
    if (own > most[0] || (own === most[0] && total > most[1])) [hottest, most] = [line.line, [own, total]];
  }
  return hottest;
}

/** Scrolls within the box of the lines: the page itself stays where it is. */
function showLine(row: HTMLElement | null): void {
  const box = row?.closest(".table-box");
  if (!row || !box) return;
  const [inner, outer] = [row.getBoundingClientRect(), box.getBoundingClientRect()];
  box.scrollTop += inner.top - outer.top - (box.clientHeight - inner.height) / 2;
}
