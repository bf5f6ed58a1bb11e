// @ts-check
// How the page of a run says things: colours, marks and short texts. No markup here.

import { clock, plural } from "../formats.js";
import { decimal, number } from "../numbers.js";
import { textOf, withTexts } from "../texts.js";

// Marks next to colours, so that nobody needs to tell red from green.
/** @type {Record<Api.CellState, { mark: string, palette: string, text: string, solid: boolean }>} */
export const LOOKS = withTexts("cell", {
  consumable: { mark: "✓", palette: "success", solid: true },
  restored: { mark: "↶", palette: "success", solid: true },
  stale: { mark: "↻", palette: "success", solid: false },
  failed: { mark: "✕", palette: "failed", solid: false },
  waived: { mark: "≈", palette: "warning", solid: false },
  held: { mark: "‖", palette: "warning", solid: true },
  blocked: { mark: "✕", palette: "failed", solid: true },
  admitted: { mark: "≈", palette: "failed", solid: false },
  running: { mark: "▸", palette: "running", solid: true },
  waiting: { mark: "·", palette: "gray", solid: false },
  lost: { mark: "!", palette: "warning", solid: true },
  released: { mark: "–", palette: "gray", solid: false },
  unneeded: { mark: "", palette: "gray", solid: false },
});

const IN_ORDER = /** @type {Api.CellState[]} */ (Object.keys(LOOKS));

/** @param {Api.Action} action */
export const computes = (action) => action === "run" || action === "heal";

// The same words as the commands have.
/** @param {Api.ResumePreview} preview */
export function resumeCounts({ reuse, restored, run, along, judge, retract }) {
  return [
    textOf("resume.reuses", { partitions: plural(reuse, "partition") }),
    restored ? textOf("resume.restored", { restored }) : "",
    textOf("resume.runs", { run }),
    along ? textOf("resume.along", { along }) : "",
    judge ? textOf("resume.judges", { judge }) : "",
    retract ? textOf("resume.retracts", { retract }) : "",
  ].join("");
}

// With what a run begins, in place of what its interval has.
/**
 * @param {Api.RestoredFrom} restore
 * @param {number} restored how many partitions
 */
export function restoreText({ stage, reference, snapshot, problem }, restored) {
  if (stage) return textOf("restore.stage", { stage });
  if (!snapshot) return textOf("restore.problem", { problem: problem ?? "", reference });
  const { address, interval, name, run_id, taken_at } = snapshot;
  return textOf("restore.snapshot", {
    interval,
    named: name && name !== reference ? textOf("restore.named", { name }) : "",
    number: `${snapshot.number}`,
    partitions: plural(restored, "partition"),
    reference: reference ?? address,
    run: run_id,
    taken: clock(taken_at),
  });
}

// Pairs of the first and the last of each range, as the server tells partitions of gates.
export const WHOLE = -1; // stands for all partitions of a stage together

/**
 * @param {number} first
 * @param {number} last
 */
function range(first, last) {
  if (first === WHOLE) return textOf("range.whole");
  return first === last ? `${first}` : `${first}–${last}`;
}

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
    .map((state) => `${number(counts[state] ?? 0)} ${LOOKS[state].text}`)
    .join(", ");
  return `${stage.name}[${first === last ? first : `${first}–${last}`}]: ${told}`;
}

// The moment is told, not the time to it: between two answers of the server nothing is counted down.
/** @param {Api.Pace} pace */
export function paceText({ wave, recorded, left, per_minute, seconds_to_go, recorded_at }) {
  const told = textOf("pace.wave", { left, recorded, wave: `${wave + 1}` });
  if (seconds_to_go === null) return told;
  const rate = per_minute >= 10 ? number(Math.round(per_minute)) : decimal(per_minute);
  return told + textOf("pace.rate", { at: clock(Date.parse(recorded_at) + 1000 * seconds_to_go), rate });
}

// The counters of a stage's author; nothing without any.
/** @param {Api.StageRow} stage */
export const countersText = ({ counters }) =>
  Object.entries(counters)
    .map(([name, count]) => `${name}: ${number(count)}`)
    .join(" · ");

// Of a group of partitions that do not meet an expectation: what that means for them now.
/** @type {Record<Api.RefusalStanding, { palette: string, text: string }>} */
export const STANDINGS = withTexts("refused", {
  blocked: { palette: "failed" },
  waived: { palette: "failed" },
  to_publish: { palette: "success" },
  published: { palette: "warning" },
  outdated: { palette: "gray" },
  ended: { palette: "failed" },
  outstaying: { palette: "failed" },
});

/** @param {Api.WaiverTold} waiver */
export function waiverText({ waived_by, reason, recorded_at, until }) {
  const facts = { at: clock(recorded_at), by: waived_by, reason };
  if (until === recorded_at) return textOf("waiver.back", facts);
  const end = until ? textOf("waiver.until", { until: clock(until) }) : textOf("waiver.ever");
  return textOf("waiver.told", { ...facts, end });
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
  if (cell.skew) facts.push(textOf("cell_fact.skewed", { skew: cell.skew }));
  if (cell.epoch !== null) facts.push(textOf("cell_fact.attempt", { epoch: `${cell.epoch}`, wave: `${cell.wave}` }));
  if (cell.run_id !== null && !cell.run_id.endsWith(`/${runId}`))
    facts.push(textOf("cell_fact.run", { run: cell.run_id }));
  return facts.join(" · ");
}
