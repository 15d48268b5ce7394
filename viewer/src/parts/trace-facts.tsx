// What each trace of the page says of itself: when and where it was written, how much it has, what is wrong with it.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Info } from "../query/types";
import { momentText } from "../snapshots/facts";
import { visible } from "../text/sites";
import { bytes, count, grouped, shortDuration, sized } from "../text/units";
import { grows } from "../view/live";
import { config, traces } from "../view/store";

export const factsOpen = signal(false);

/** Asked for now and then: `heaptap info` says the same of a file. */
function factsOf(info: Info): [string, string][] {
  const { file, totals, limits } = info;
  const facts: [string, string | null][] = [
    ["program", info.executable],
    ["host", info.host],
    ["process", String(info.pid)],
    ["started", momentText(info.start_us)],
    [grows.value ? "lasts so far" : "lasted", `${shortDuration(info.duration_us)} (${grouped(info.duration_us)} µs)`],
    info.sample_rates
      ? ["sampling rates", `${info.sample_rates.join(", ")}: each block counts by its own`]
      : ["sampling rate", `${info.sample_rate}, one word in ${grouped(1 / Math.max(info.sample_rate, 1e-18))}`],
    ["word", `${8 * info.word_bytes} bits`],
    ["runtime's parameters", info.runtime_params.replaceAll(",", ", ") || "none"],
    ["context", info.context || null],
    ["allocated", sized(totals.allocated)],
    ["events", grouped(info.events)],
    ["samples", grouped(totals.samples)],
    ["blocks in the page", `${grouped(info.blocks)}${info.blocks_one_in > 1 ? `, one in ${info.blocks_one_in} small ones` : ", all that were sampled"}`],
    ["blocks followed", limits.objects_followed_one_in > 1 ? `one in ${limits.objects_followed_one_in} of those sampled` : "all that were sampled"],
    ["call paths", grouped(info.call_paths)],
    ["domains", info.domains.length === 1 ? "one" : `${grouped(info.domains.length)}: ${info.domains.join(", ")}`],
    ["file", file && `${bytes(file.bytes)} (${count(file.bytes, "byte", "bytes")})${file.files > 1 ? ` in ${file.files} files` : ""}`],
    ["format", file && file.versions.length > 0 ? `memtrace ${file.versions.join(" and ")}` : null],
  ];
  return facts.flatMap(([name, value]) => (value === null || value === "" ? [] : [[name, visible(value)] as [string, string]]));
}

export function TraceFacts() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (factsOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [factsOpen.value]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="facts-title" onClose={() => { factsOpen.value = false; }} onClick={(event) => { if (event.target === dialog.current) factsOpen.value = false; }}>
      {factsOpen.value && (
        <div class="help-body trace-facts">
          <div class="help-head">
            <h2 id="facts-title">Trace facts</h2>
            <button type="button" onClick={() => { factsOpen.value = false; }}>close</button>
          </div>
          {traces.value.map((state, trace) => <OneTrace name={config.traces[trace]?.name ?? ""} info={"info" in state ? state.info : null} error={"error" in state ? state.error : null} />)}
        </div>
      )}
    </dialog>
  );
}

function OneTrace({ name, info, error }: { name: string; info: Info | null; error: string | null }) {
  return (
    <section aria-label={`Facts about ${visible(name)}`}>
      <h3 class="break">{visible(name)}</h3>
      {error !== null && <p class="problem">{error}</p>}
      {info === null && error === null && <p class="faint">It is being read.</p>}
      {info && (
        <>
          <dl>{factsOf(info).map(([fact, value]) => <div><dt>{fact}</dt><dd class="break">{value}</dd></div>)}</dl>
          {info.cut_short && <p class="prose break">The end of this trace is missing: {visible(info.cut_short)}.</p>}
          {info.notes.map((note) => <p class="prose break">{visible(note)}</p>)}
        </>
      )}
    </section>
  );
}
