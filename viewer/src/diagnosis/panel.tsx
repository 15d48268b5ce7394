// The verdict on the program's memory in one sentence, with how sure it is; unfolded, the findings and what they rest on.
// It is of the whole run, whatever the page selects.

import { useState } from "preact/hooks";
import { visible } from "../text/sites";
import { capital } from "../text/words";
import { count, shortDuration } from "../text/units";
import { view } from "../view/store";
import { diagnosis, type Diagnosis } from "./document";
import { Evidence } from "./evidence";
import { Finding, HowSure } from "./finding";

export function DiagnosisPanel() {
  const state = diagnosis.value;
  if (state === null) return null;
  return (
    <section class="diagnosis" aria-label="Diagnosis" aria-busy={state.state === "waiting"}>
      {state.state === "waiting" ? <p class="faint">Diagnosis: all evidence is being read…</p>
      : state.state === "failed" ? <p class="faint break">There is no diagnosis: {visible(state.error)}</p>
      : <Verdict diagnosis={state.diagnosis} soFar={state.so_far} />}
    </section>
  );
}

const OUTCOMES = { found: null, nothing_wrong: "nothing wrong", cannot_tell: "undecided" } as const;

function Verdict({ diagnosis, soFar }: { diagnosis: Diagnosis; soFar: boolean }) {
  const [open, setOpen] = useState(false);
  const { verdict: { outcome, sentence, command }, findings } = diagnosis;
  const first = findings[0];
  const label = findings.length === 0 ? "what was looked at" : `${count(findings.length, "finding", "findings")} and evidence`;
  return (
    <>
      <div class="diagnosis-head">
        <h2 class={`diagnosis-verdict break${outcome === "found" ? " bad" : ""}`}>
          {outcome === "found" && first ? <HowSure finding={first} /> : <span class="tag how-sure">{OUTCOMES[outcome]}</span>}
          {capital(visible(sentence))}
        </h2>
        <span class="faint">{scope(diagnosis, soFar)}</span>
        <button type="button" class="plain link" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "less" : label}</button>
      </div>
      {command && <p class="break">To decide it: <code>{visible(command)}</code></p>}
      {open && (
        <div class="diagnosis-body">
          {findings.map((finding, at) => <Finding finding={finding} limit={diagnosis.examined.limit} isSaid={at === 0 && sentence.includes(finding.sentence)} />)}
          <Evidence diagnosis={diagnosis} />
        </div>
      )}
    </>
  );
}

/** Of what it is the verdict. */
function scope({ examined: { from_us: from, to_us: to } }: Diagnosis, soFar: boolean): string {
  const whole = view.value.chips.length > 0 ? "of the whole run, whatever the filters select" : "of the whole run";
  return soFar ? `so far, after ${shortDuration(to - from)}${view.value.chips.length > 0 ? `; ${whole}` : ""}` : whole;
}
