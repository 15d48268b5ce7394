// Source: the lines of a file that allocate. The text comes from `heaptap serve --source-root`, or
// is in a page that was written `--with-source`; otherwise there are the lines and their functions.

import { useEffect, useState } from "preact/hooks";
import type { Site, SourceLines, Sum } from "../query/types";
import { Message, Problem } from "../parts/messages";
import { ErrorBar, Sized, SizeCells } from "../parts/numbers";
import { sourceLines } from "../query/page-data";
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
        <div class="tools"><h2 class="break">{visible(file)}</h2>{lines.answer && <span class="tools-right"><Sized size={lines.answer.total} /></span>}</div>
        {lines.error && <Problem text={lines.error} />}
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
  useEffect(() => {
    document.querySelector(".lines tr.wanted")?.scrollIntoView({ block: "center" });
  }, [wanted, shown, lines]);
  const byLine = new Map(lines.lines.map((each) => [each.line, each]));
  const most = Math.max(1, ...lines.lines.map(({ sum }) => sum.high));
  const numbers = shown ? shown.map((_, at) => at + 1) : [...byLine.keys()].sort((a, b) => a - b);
  return (
    <>
      {problem && <Problem text={problem} />}
      {!shown && !problem && <p class="faint prose">{config.mode === "serve" ? "The text of files is shown with heaptap serve --source-root DIR." : "The text of files is in a page that heaptap export writes --with-source --source-root DIR, and in that of heaptap serve --source-root DIR."}</p>}
      <div class="table-box" tabIndex={0} role="region" aria-label="Lines">
        <table class="code">
          <thead><tr><th class="num" scope="col">size</th><th class="num" scope="col">error</th><th class="bar-col" scope="col"><span class="hidden">95 % interval</span></th><th class="num" scope="col">line</th><th scope="col">{shown ? "text" : "function"}</th></tr></thead>
          <tbody>
            {numbers.map((number) => {
              const known = byLine.get(number);
              return (
                <tr class={`${number === wanted ? "wanted" : ""}${known ? " hot" : ""}`}>
                  {known ? <SizeCells size={known.sum} /> : <><td class="num" /><td class="num err" /></>}
                  <td class="bar-col">{known && <ErrorBar size={known.sum satisfies Sum} most={most} />}</td>
                  <td class="num faint">{number}</td>
                  <td class="text" title={known?.functions.join(", ")}>{shown ? shown[number - 1] : known?.functions.map(visible).join(", ")}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}
