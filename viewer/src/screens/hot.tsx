// The hot fragments of `heaptap hot`: runs of calls, anywhere in stacks, under which much is
// allocated. They are shown in place of the rows of the table.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { HotFragment, HotFrame, TreeBy } from "../query/types";
import { NothingSelected, Problem } from "../parts/messages";
import { Sized } from "../parts/numbers";
import { hotCsv } from "../saving/csv";
import { fileName, saveText } from "../saving/file";
import { label, siteKey, siteOf } from "../text/sites";
import { bytes, percent } from "../text/units";
import { useQuery } from "../view/ask";
import { metricTitle } from "../view/metric";
import { common } from "../view/request";
import { change, view } from "../view/store";

/** Of a long fragment, so many frames at its beginning and its end are shown, as on the command line. */
const FIRST = 8;
const LAST = 3;

export function Hot({ by, tools }: { by: TreeBy; tools(onSave: (() => void) | null): ComponentChildren }) {
  const { answer, error, stale } = useQuery("hot", "hot", { ...common(view.value), by });
  return (
    <div class={`hot-fragments${stale ? " stale" : ""}`}>
      {tools(answer && (() => saveText(fileName("hot", "csv"), "text/csv", hotCsv(answer.fragments))))}
      {error && <Problem text={error} />}
      {answer && answer.total.bytes === 0 && <NothingSelected />}
      {answer && answer.total.bytes > 0 && (
        <>
          <p class="faint prose">Runs of calls that have at least {percent(answer.threshold)} of the <Sized size={answer.total} /> {metricTitle(answer.metric)}. The allocation comes first, then its callers.</p>
          {answer.fragments.length === 0 && <p class="prose">No run of calls has as much: it is spread over many call paths.</p>}
          {!answer.limits.complete && <p class="prose">There are too many call paths to search all of them: fragments may be longer.</p>}
          {answer.fragments.some(isLight) && <p class="prose">(light call paths) stands for rare call paths, which are known here without their callers.</p>}
          <ol class="fragments">{answer.fragments.map((fragment) => <Fragment key={fragment.frames.map(siteKey).join("\n")} fragment={fragment} total={answer.total.bytes} by={by} />)}</ol>
        </>
      )}
    </div>
  );
}

const isLight = ({ frames }: HotFragment) => frames.some(({ name }) => name === "(light call paths)");

function Fragment({ fragment, total, by }: { fragment: HotFragment; total: number; by: TreeBy }) {
  const { frames, share, own_share: own } = fragment;
  const [whole, setWhole] = useState(false);
  const cut = !whole && frames.length > FIRST + LAST + 1;
  return (
    <li class="fragment">
      <p><b><Sized size={fragment} /></b> <span class="faint" title={`${bytes(own * total)} of it are in no fragment above; 95 %: ${bytes(fragment.low)} to ${bytes(fragment.high)}`}>{percent(share)}{own < share && `, ${percent(own)} of it in no fragment above`}</span></p>
      <ol class="frames">
        {(cut ? frames.slice(0, FIRST) : frames).map((frame) => <Frame frame={frame} by={by} />)}
        {cut && <li><button type="button" class="plain link" onClick={() => setWhole(true)}>… {frames.length - FIRST - LAST} more</button></li>}
        {cut && frames.slice(-LAST).map((frame) => <Frame frame={frame} by={by} />)}
      </ol>
    </li>
  );
}

function Frame({ frame, by }: { frame: HotFrame; by: TreeBy }) {
  return (
    <li class="break">
      <button type="button" class="plain" onClick={() => change({ hot: false, by, row: siteOf(frame) })}>{label(frame)}</button>
      {frame.repeats !== undefined && <span class="faint"> repeated up to ×{frame.repeats}</span>}
    </li>
  );
}
