// On how many blocks the figures in view rest: said in the head and, where that is not all, in a note. Both come from here,
// so that they cannot contradict each other.

import { computed } from "@preact/signals";
import { grouped } from "../text/units";
import { canBeExact } from "./exact";
import { exact, exactFailed, info, view } from "./store";

/** Whether the figures come from the table of blocks: those with a filter, and of a time. */
const fromTable = computed(() => view.value.chips.length > 0 || view.value.metric === "at");

/** Whether the figures in view are those of a full reading. */
export const fromReading = computed(() => exact.value && canBeExact.value && !exactFailed.value);

/** What the head says. */
export const basis = computed(() => {
  if (info.value === null) return "";
  if (fromReading.value) return "full reading";
  const { blocks_one_in: kept, limits: { objects_followed_one_in: followed } } = info.value;
  const most = fromTable.value ? Math.max(kept, followed) : followed;
  if (most <= 1) return "every block followed";
  return most > followed ? `one in ${grouped(most)} small blocks counted` : `one in ${grouped(most)} small blocks followed`;
});

/** What a person should know about that; null if every block counts whatever is asked. */
export const basisNote = computed(() => {
  if (info.value === null) return null;
  const { blocks_one_in: kept, limits: { objects_followed_one_in: followed, samples_missing_from_callers: missing }, table_lacks_callers: lacks } = info.value;
  const some = followed > 1 ? `So much was alive that one in ${grouped(followed)} small blocks was followed; errors include that.` : null;
  if (fromReading.value || kept <= followed) return some;
  const all = followed > 1 ? `those of one in ${grouped(followed)} small blocks, since so much was alive` : "those of all blocks";
  const table = `from one in ${grouped(kept)} small blocks, which the page has`;
  return fromTable.value
    ? `These figures come ${table}; errors include that. Without a filter, and without a chosen time, they are ${all}.`
    : `These figures are ${all}. With a filter, ${missing > 0 && !lacks ? "at a chosen time, in the call tree and as totals" : "and at a chosen time"}, they come ${table}; errors include that.`;
});
