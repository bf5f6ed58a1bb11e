// The attempts so far, on a line of time with their waves: where did the time go?

import { Columns, FoldedCard } from "../card.js";
import { clock, duration, plural } from "../words.js";

const { createElement: h } = globalThis.React;
const { Box } = globalThis.ChakraUI;

const TONES = { finished: "success", failed: "failed", canceled: "failed" };

function span(attempts) {
  const now = Date.now();
  const begins = attempts.map((one) => Date.parse(one.started_at));
  const ends = attempts.map((one) => (one.ended_at ? Date.parse(one.ended_at) : now));
  const first = Math.min(...begins);
  return { first, length: Math.max(1, Math.max(...ends) - first), now };
}

function Lasted({ attempt, time }) {
  const at = (moment) => (100 * (Date.parse(moment) - time.first)) / time.length;
  const left = at(attempt.started_at);
  const right = attempt.ended_at ? at(attempt.ended_at) : (100 * (time.now - time.first)) / time.length;
  const lasted = duration(attempt.started_at, attempt.ended_at ?? new Date(time.now).toISOString());
  return h(
    Box,
    {
      "aria-label": `${attempt.region} took ${lasted}, ${plural(attempt.waves.length, "wave")}`,
      bg: "bg.muted",
      borderRadius: "sm",
      h: "16px",
      minW: "160px",
      position: "relative",
      role: "img",
    },
    h(Box, {
      bg: `${TONES[attempt.state] ?? "running"}.emphasized`,
      borderRadius: "sm",
      h: "full",
      left: `${left}%`,
      minW: "3px",
      position: "absolute",
      title: lasted,
      w: `${Math.max(0, right - left)}%`,
    }),
    attempt.waves.map((wave) =>
      h(Box, {
        bg: "fg",
        h: "full",
        key: `${wave.stage} ${wave.wave}`,
        left: `${at(wave.ended_at)}%`,
        opacity: 0.6,
        position: "absolute",
        title: `${wave.stage}, wave ${wave.wave}: ${plural(wave.partitions, "partition")}, ${clock(wave.ended_at)}`,
        w: "1px",
      }),
    ),
  );
}

function Lines({ attempts }) {
  const time = span(attempts);
  const rows = attempts.map((attempt) => [
    attempt.region,
    attempt.epoch || "not begun",
    attempt.state,
    clock(attempt.started_at),
    attempt.ended_at ? duration(attempt.started_at, attempt.ended_at) : "",
    h(Lasted, { attempt, time }),
  ]);
  return h(Columns, { names: ["Region", "Epoch", "State", "Started", "Lasted", "Waves"], rows });
}

export function Attempts({ grid }) {
  if (grid.attempts.length === 0) return null;
  const title = plural(grid.attempts.length, "attempt");
  return h(
    FoldedCard,
    { "data-testid": "attempts", note: "and where the time went", title },
    h(Lines, { attempts: grid.attempts }),
  );
}
