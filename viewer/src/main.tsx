// The page. The view is in the address (view/), figures come from the query in a worker (query/),
// screens/ shows them with the parts in parts/, timeline/ and icicle/. Names in a trace are
// somebody else's text: they reach the page as text nodes and canvas text only.

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ChipBar } from "./parts/chip-bar";
import { Head, Tabs, TAB_NAMES } from "./parts/head";
import { Help } from "./parts/help";
import { TraceFacts } from "./parts/trace-facts";
import { anyReading, EmptyTrace, Notices, TraceMessage } from "./parts/messages";
import { loadDiagnoses } from "./diagnosis/document";
import { Heat } from "./heat/screen";
import { Diff } from "./screens/diff";
import { Flame } from "./screens/flame";
import { Leaks } from "./screens/leaks";
import { Overview } from "./screens/overview";
import { Source } from "./screens/source";
import { Table } from "./screens/table";
import type { Info } from "./query/types";
import { loadSnapshots, stillReading } from "./snapshots/document";
import { Snapshots } from "./snapshots/screen";
import { Timeline, useTimeline } from "./timeline/timeline";
import { client, config, followAddress, info, traces, view } from "./view/store";
import { rankModules } from "./view/colour";
import { followKeys } from "./keys";
import { followTheme } from "./view/theme";
import { load } from "./view/load";
import { followReadings } from "./view/exact";

function Page() {
  const current = view.value;
  const known = info.value;
  const name = config.traces[current.trace]?.name ?? "";
  useEffect(() => {
    document.title = [TAB_NAMES[current.tab], name, "heaptap"].filter(Boolean).join(" · ");
  }, [current.tab, name]);
  /** The trace whose modules have the hues. */
  const ranked = useRef<number | null>(null);
  useEffect(() => {
    if (!known) return;
    // The hues follow the whole trace, so that no filter changes them.
    client.ask("modules", "report", { trace: current.trace, filter: {}, metric: "peak", sites: "own", by: "module", top: 8 }, (outcome) => {
      if (!("table" in outcome)) return;
      rankModules(outcome.table.rows.map((row) => row.name), ranked.current === current.trace);
      ranked.current = current.trace;
    });
  }, [known]);
  return (
    <>
      <header>
        <Head info={known} />
        <Tabs />
      </header>
      <Notices info={known} />
      <main class={`tab-${current.tab}`} aria-busy={client.busy.value || anyReading() || stillReading()}>
        {current.tab === "snapshots" ? <Snapshots />
        : known === null ? <TraceMessage state={traces.value[current.trace] ?? traces.value[0]} name={name} />
        : known.totals.samples === 0 ? <EmptyTrace info={known} />
        : <Screen info={known} />}
      </main>
      <Help />
      <TraceFacts />
    </>
  );
}

function Screen({ info }: { info: Info }) {
  const { tab } = view.value;
  return (
    <>
      {tab !== "overview" && tab !== "diff" && tab !== "heat" && <Strip info={info} />}
      <ChipBar info={info} />
      {tab === "overview" ? <Overview info={info} />
      : tab === "flame" ? <Flame panel={true} />
      : tab === "table" ? <Table />
      : tab === "leaks" ? <Leaks info={info} />
      : tab === "diff" ? <Diff />
      : tab === "heat" ? <Heat info={info} />
      : <Source />}
    </>
  );
}

/** The time line above the other views. */
function Strip({ info }: { info: Info }) {
  const { answer } = useTimeline();
  return <div class="strip">{answer && <Timeline data={answer} info={info} height={104} />}</div>;
}

followTheme();
followAddress();
followKeys();
render(<Page />, document.getElementById("page")!);
followReadings();
load();
void loadSnapshots();
loadDiagnoses();
