// What the program says of itself: its probes as a tree, and its log.

import { Problem } from "../parts/messages";
import { visible } from "../text/sites";
import { count, shortDuration } from "../text/units";
import { sidecar, type Sidecar, type TreeLine } from "./document";
import { change } from "../view/store";
import { chosenNames } from "./lanes";

/** The lines of the log that are listed, the latest first. */
const LISTED = 200;

export function Program() {
  const found = sidecar.value;
  if (!found) return null;
  const probes = found.tree.filter(({ probe }) => probe !== undefined).length;
  if (probes === 0 && found.log.length === 0 && !found.problem) return null;
  const lines = found.log.length + found.more_log;
  return (
    <section class="program" aria-label="What the program says of itself">
      {found.problem && <Problem text={visible(found.problem)} />}
      {probes > 0 && (
        <details open={probes <= 20}>
          <summary>{count(probes, "probe", "probes")}</summary>
          <ProbeTree found={found} />
        </details>
      )}
      {lines > 0 && (
        <details open={lines <= 10}>
          <summary>{count(lines, "line of the log", "lines of the log")}</summary>
          <ol class="log-lines">
            {[...found.log].reverse().slice(0, LISTED).map(({ time_us, text, stop }) => (
              <li><span class="faint">{shortDuration(time_us)}</span>{stop && <b>pause: </b>}{visible(text)}</li>
            ))}
          </ol>
          {lines > LISTED && <p class="faint">The latest {LISTED}; <code>heaptap probes FILE --log</code> prints all.</p>}
        </details>
      )}
    </section>
  );
}

function ProbeTree({ found }: { found: Sidecar }) {
  const names = chosenNames(found);
  const toggle = (name: string) => {
    change({ lanes: names.includes(name) ? names.filter((each) => each !== name) : [...names, name] });
  };
  const row = ({ level, label, probe }: TreeLine) => {
    const indent = { paddingLeft: `${8 + 16 * level}px` };
    if (!probe) return <tr><th scope="row" style={indent} colSpan={4}>{visible(label)}</th></tr>;
    return (
      <tr>
        <td style={indent}>{visible(label)}</td>
        <td class="faint">{probe.kind}</td>
        <td>{probe.state}</td>
        <td>{probe.values && <button type="button" class="plain" aria-pressed={names.includes(probe.name)} aria-label={`${visible(probe.name)} on the time line`} onClick={() => toggle(probe.name)}>chart</button>}</td>
      </tr>
    );
  };
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Probes">
      <table class="probe-tree">
        <thead><tr><th scope="col">probe</th><th scope="col">kind</th><th scope="col">at the end</th><th scope="col">time line</th></tr></thead>
        <tbody>{found.tree.map(row)}</tbody>
      </table>
    </div>
  );
}
