// How the page says things: colours, marks and short texts. No markup here.

// Marks next to colours, so that nobody needs to tell red from green.
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

export const computes = (action) => action === "run" || action === "heal";

export const plural = (count, noun) => `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;

// The same words as the commands have.
export function resumeCounts({ reuse, restored, run, along, judge, retract }) {
  const more = along ? ` (${along.toLocaleString()} more computed along, not stored)` : "";
  const taken = restored ? ` (${restored.toLocaleString()} of them restored)` : "";
  const judged = judge ? `, has ${judge.toLocaleString()} judged again` : "";
  const retracted = retract ? `, takes ${retract.toLocaleString()} out of their tables` : "";
  return `reuses ${plural(reuse, "partition")}${taken}, runs ${run.toLocaleString()}${more}${judged}${retracted}`;
}

// With what a run begins, in place of what its interval has.
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

const range = (first, last) => (first === WHOLE ? "all together" : first === last ? `${first}` : `${first}–${last}`);

export const ranges = (pairs) => pairs.map(([first, last]) => range(first, last)).join(", ");

export const has = (pairs, partition) => pairs.some(([first, last]) => first <= partition && partition <= last);

// How many partitions of all stages are in a state.
export const countOf = (grid, state) => grid.stages.reduce((sum, stage) => sum + (stage.counts[state] ?? 0), 0);

// Part of a strip: which partitions, and how many of them are what.
export function partText(stage, { first, last, counts }) {
  const states = Object.keys(LOOKS).filter((state) => counts[state]);
  const told = states.map((state) => `${counts[state].toLocaleString()} ${LOOKS[state].text}`).join(", ");
  return `${stage.name}[${first === last ? first : `${first}–${last}`}]: ${told}`;
}

export function timeToGo(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

// The moment is told, not the time to it: between two answers of the server nothing is counted down.
export const paceText = ({ wave, recorded, left, per_minute, seconds_to_go, recorded_at }) => {
  const rate = per_minute >= 10 ? Math.round(per_minute) : per_minute.toFixed(1);
  const end = clock(Date.parse(recorded_at) + 1000 * seconds_to_go);
  const rest = seconds_to_go === null ? "" : `, ${rate} a minute, done at about ${end}`;
  return `wave ${wave + 1}: ${recorded.toLocaleString()} recorded, ${left.toLocaleString()} to go${rest}`;
};

// The page of the run that computed something, in Airflow; null for a run of a command.
export function runPage(runId) {
  const cut = runId.indexOf("/");
  const [dag, run] = [runId.slice(0, cut), runId.slice(cut + 1)];
  return cut < 0 || run.startsWith("cli__")
    ? null
    : new URL(`../../dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run)}/plugin/stagehold`, import.meta.url)
        .href;
}

// Of a group of partitions that do not meet an expectation: what that means for them now.
export const STANDINGS = {
  blocked: { palette: "failed", text: "blocked" },
  waived: { palette: "failed", text: "waived, and blocked by another expectation" },
  to_publish: { palette: "success", text: "waived: Resume publishes it" },
  published: { palette: "warning", text: "waived and published" },
  outdated: { palette: "gray", text: "Resume computes it anew, and it is judged again" },
  ended: { palette: "failed", text: "published by a waiver that has ended: Resume takes it out" },
  outstaying: { palette: "failed", text: "blocked, and still in its table" },
};

// What an expectation came to for a partition.
export const OUTCOMES = {
  failed: { mark: "✕", palette: "failed", text: "not met: blocks" },
  waived: { mark: "≈", palette: "warning", text: "not met, and waived" },
  warning: { mark: "!", palette: "warning", text: "not met: warning" },
  info: { mark: "i", palette: "gray", text: "not met: info" },
  passed: { mark: "✓", palette: "success", text: "met" },
};

export function waiverText({ waived_by, reason, recorded_at, until }) {
  const end = until ? `until ${clock(until)}` : "for ever";
  return `${waived_by} waived it on ${clock(recorded_at)}, ${end}: ${reason}`;
}

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  const power = Math.min(Math.floor(Math.log2(count) / 10), 4);
  return `${(count / 1024 ** power).toFixed(1)} ${["", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

export function duration(from, to) {
  const seconds = (new Date(to) - new Date(from)) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

// Made once: a page tells hundreds of moments.
const MOMENT = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium" });

export const clock = (moment) => MOMENT.format(new Date(moment));

// What figures were made from: the ledger, or the lake as it was then.
export function lookedText({ into, at }) {
  if (into === "record") return "as recorded";
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000));
  return seconds < 90 ? `as found ${seconds} s ago` : `as found ${clock(at)}`;
}

// One sentence per partition: the square's title, its name for screen readers, and the line under the grid.
export function cellText(stage, cell, runId) {
  const facts = [`${stage.name}[${cell.partition}]: ${LOOKS[cell.state].text}`, cell.reason];
  if (cell.rows !== null) facts.push(plural(cell.rows, "row"));
  if (cell.skew) facts.push(`skewed: ${cell.skew}`);
  if (cell.epoch !== null) facts.push(`attempt epoch ${cell.epoch}, wave ${cell.wave}`);
  if (cell.run_id !== null && !cell.run_id.endsWith(`/${runId}`)) facts.push(`computed by run ${cell.run_id}`);
  return facts.join(" · ");
}
