// @ts-check
// How the page of a run says things: colours, marks and short texts. No markup here.

import { clock, plural } from "../formats.js";

// Marks next to colours, so that nobody needs to tell red from green.
/** @type {Record<Api.CellState, { mark: string, palette: string, text: string, solid: boolean }>} */
export const LOOKS = {
  consumable: { mark: "✓", palette: "success", text: "consumable", solid: true },
  restored: { mark: "↶", palette: "success", text: "consumable, restored", solid: true },
  stale: { mark: "↻", palette: "success", text: "consumable, but will run again", solid: false },
  failed: { mark: "✕", palette: "failed", text: "failed", solid: false },
  waived: { mark: "≈", palette: "warning", text: "consumable, though its gate refuses it: waived", solid: false },
  held: { mark: "‖", palette: "warning", text: "held until its gate lets all of the stage", solid: true },
  blocked: { mark: "✕", palette: "failed", text: "blocked by its gate", solid: true },
  admitted: { mark: "≈", palette: "failed", text: "blocked, but waived: Resume publishes it", solid: false },
  running: { mark: "▸", palette: "running", text: "running", solid: true },
  waiting: { mark: "·", palette: "gray", text: "waiting", solid: false },
  lost: { mark: "!", palette: "warning", text: "its data is gone", solid: true },
  released: { mark: "–", palette: "gray", text: "released", solid: false },
  unneeded: { mark: "", palette: "gray", text: "not needed", solid: false },
};

const IN_ORDER = /** @type {Api.CellState[]} */ (Object.keys(LOOKS));

/** @param {Api.Action} action */
export const computes = (action) => action === "run" || action === "heal";

// The same words as the commands have.
/** @param {Api.ResumePreview} preview */
export function resumeCounts({ reuse, restored, run, along, judge, retract }) {
  const more = along ? ` (${along.toLocaleString()} more computed along, not stored)` : "";
  const taken = restored ? ` (${restored.toLocaleString()} of them restored)` : "";
  const judged = judge ? `, has ${judge.toLocaleString()} judged again` : "";
  const retracted = retract ? `, takes ${retract.toLocaleString()} out of their tables` : "";
  return `reuses ${plural(reuse, "partition")}${taken}, runs ${run.toLocaleString()}${more}${judged}${retracted}`;
}

// With what a run begins, in place of what its interval has.
/**
 * @param {Api.RestoredFrom} restore
 * @param {number} restored how many partitions
 */
export function restoreText({ stage, reference, snapshot, problem }, restored) {
  if (stage) return `Restored from stage ${stage}: it and all that reads it is computed again`;
  if (!snapshot) return `Begins with ${reference}. ${problem ?? ""}`;
  const named = snapshot.name && snapshot.name !== reference ? `savepoint ${snapshot.name}, ` : "";
  const whose = `checkpoint ${snapshot.number} of run ${snapshot.run_id} for ${snapshot.interval}`;
  return (
    `Begins with ${reference ?? snapshot.address}: ${named}${whose}, taken ${clock(snapshot.taken_at)}; ` +
    `${plural(restored, "partition")} restored`
  );
}

// Pairs of the first and the last of each range, as the server tells partitions of gates.
export const WHOLE = -1; // stands for all partitions of a stage together

/**
 * @param {number} first
 * @param {number} last
 */
const range = (first, last) => (first === WHOLE ? "all together" : first === last ? `${first}` : `${first}–${last}`);

/** @param {[number, number][]} pairs */
export const ranges = (pairs) => pairs.map(([first, last]) => range(first, last)).join(", ");

/**
 * @param {[number, number][]} pairs
 * @param {number} partition
 */
export const has = (pairs, partition) => pairs.some(([first, last]) => first <= partition && partition <= last);

// How many partitions of these stages are in a state.
/**
 * @param {Api.StageRow[]} stages
 * @param {Api.CellState} state
 */
export const countOf = (stages, state) => stages.reduce((sum, stage) => sum + (stage.counts[state] ?? 0), 0);

// The states that some partition of these stages is in, with how many are.
/** @param {Api.StageRow[]} stages */
export const countsOf = (stages) =>
  IN_ORDER.map((state) => ({ state, count: countOf(stages, state) })).filter(({ count }) => count > 0);

// Part of a strip: which partitions, and how many of them are what.
/**
 * @param {Api.StageRow} stage
 * @param {Api.StripPart} part
 */
export function partText(stage, { first, last, counts }) {
  const told = IN_ORDER.filter((state) => counts[state])
    .map((state) => `${counts[state]?.toLocaleString()} ${LOOKS[state].text}`)
    .join(", ");
  return `${stage.name}[${first === last ? first : `${first}–${last}`}]: ${told}`;
}

// The moment is told, not the time to it: between two answers of the server nothing is counted down.
/** @param {Api.Pace} pace */
export function paceText({ wave, recorded, left, per_minute, seconds_to_go, recorded_at }) {
  const told = `wave ${wave + 1}: ${recorded.toLocaleString()} recorded, ${left.toLocaleString()} to go`;
  if (seconds_to_go === null) return told;
  const rate = per_minute >= 10 ? Math.round(per_minute) : per_minute.toFixed(1);
  return `${told}, ${rate} a minute, done at about ${clock(Date.parse(recorded_at) + 1000 * seconds_to_go)}`;
}

// Of a group of partitions that do not meet an expectation: what that means for them now.
/** @type {Record<Api.RefusalStanding, { palette: string, text: string }>} */
export const STANDINGS = {
  blocked: { palette: "failed", text: "blocked" },
  waived: { palette: "failed", text: "waived, and blocked by another expectation" },
  to_publish: { palette: "success", text: "waived: Resume publishes it" },
  published: { palette: "warning", text: "waived and published" },
  outdated: { palette: "gray", text: "Resume computes it anew, and it is judged again" },
  ended: { palette: "failed", text: "published by a waiver that has ended: Resume takes it out" },
  outstaying: { palette: "failed", text: "blocked, and still in its table" },
};

/** @param {Api.WaiverTold} waiver */
export function waiverText({ waived_by, reason, recorded_at, until }) {
  if (until === recorded_at) return `${waived_by} took that back on ${clock(recorded_at)}: ${reason}`;
  const end = until ? `until ${clock(until)}` : "for ever";
  return `${waived_by} waived it on ${clock(recorded_at)}, ${end}: ${reason}`;
}

// Who let what a gate refuses be read, or takes that back; what was said before comes first.
/** @param {Api.GateFailure} failure */
export const wordsOf = ({ past = [], waiver, count }) => [
  ...past.map((word) => `${word.count < count ? `[${ranges(word.partitions)}] ` : ""}${waiverText(word.waiver)}`),
  ...(waiver ? [waiverText(waiver)] : []),
];

// One sentence per partition: the square's title, its name for screen readers, and the line under the grid.
/**
 * @param {Api.StageRow} stage
 * @param {Api.PartitionCell} cell
 * @param {string} runId of the run that is looked at
 */
export function cellText(stage, cell, runId) {
  const facts = [`${stage.name}[${cell.partition}]: ${LOOKS[cell.state].text}`, cell.reason];
  if (cell.rows !== null) facts.push(plural(cell.rows, "row"));
  if (cell.skew) facts.push(`skewed: ${cell.skew}`);
  if (cell.epoch !== null) facts.push(`attempt epoch ${cell.epoch}, wave ${cell.wave}`);
  if (cell.run_id !== null && !cell.run_id.endsWith(`/${runId}`)) facts.push(`computed by run ${cell.run_id}`);
  return facts.join(" · ");
}
