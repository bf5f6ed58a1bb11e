// The form in which somebody says that data may be read though its gate refuses it, or takes that back.

import { waive } from "../api.js";
import { ranges } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Box, Button, Code, Flex, Input, Text } = globalThis.ChakraUI;

const LONGEST_REASON = 1000; // letters that the server takes

function Field({ name, label, children }) {
  return h(
    Box,
    { as: "label", display: "block", flex: name === "reason" ? "1 1 320px" : "0 0 200px", fontSize: "sm" },
    h(Text, { as: "span", color: "fg.muted" }, label),
    children,
  );
}

function Question({ failure }) {
  const which = `${failure.stage}[${ranges(failure.partitions)}]`;
  const text = failure.waiver ? "Take back what was waived of" : "Let";
  const end = failure.waiver ? "." : " be read as it is, though it does not meet this. The verdict stays on record.";
  return h(
    Text,
    { fontSize: "sm", mb: 2 },
    `${text} `,
    h(Text, { as: "span", fontWeight: "semibold" }, which),
    end,
    h(Code, { display: "block", mt: 1, size: "sm", whiteSpace: "pre-wrap" }, failure.expectation),
  );
}

// `failure` is a group of partitions with one expectation that they do not meet; if it has a waiver, that is ended.
export function Waive({ dagId, runId, failure, onDone, onCancel }) {
  const [reason, setReason] = useState("");
  const [until, setUntil] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const end = failure.waiver !== null;
  const { stage, expectation, partitions } = failure;
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    const wish = { stage, expectation, partitions, reason, end, until: end || !until ? null : until };
    await waive(dagId, runId, wish).then((answer) => onDone({ ...answer, end }), setProblem);
    setBusy(false);
  };
  const typed = (set) => ({ onChange: (event) => set(event.target.value), size: "sm" });
  const tomorrow = new Date(Date.now() + 24 * 3600 * 1000).toISOString().slice(0, 10);
  return h(
    Box,
    { as: "form", bg: "bg.subtle", borderTopWidth: "1px", "data-testid": "waive", onSubmit: send, px: 4, py: 3 },
    h(Question, { failure }),
    h(
      Flex,
      { align: "end", gap: 3, wrap: "wrap" },
      h(
        Field,
        { name: "reason", label: "Why? It is kept with your name." },
        h(Input, { ...typed(setReason), autoFocus: true, maxLength: LONGEST_REASON, required: true, value: reason }),
      ),
      !end &&
        h(
          Field,
          { name: "until", label: "Until (UTC), if not for ever" },
          h(Input, { ...typed(setUntil), min: tomorrow, type: "date", value: until }),
        ),
      h(
        Button,
        { colorPalette: "brand", disabled: busy || !reason.trim(), loading: busy, size: "sm", type: "submit" },
        end ? "Take back" : "Waive",
      ),
      h(Button, { onClick: onCancel, size: "sm", type: "button", variant: "ghost" }, "Cancel"),
    ),
    problem && h(Text, { color: "failed.fg", fontSize: "sm", mt: 2, role: "alert" }, problem.message),
  );
}
