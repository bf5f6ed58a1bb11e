// What the parts of the tabs look alike in: a card with a title, a table, a notice, the name of a run.

import { runPage } from "./words.js";

const { createElement: h, useState } = globalThis.React;
const { Box, Flex, Heading, Link, Spinner, Table, Text } = globalThis.ChakraUI;

export function Card({ title, note, action, children, ...rest }) {
  return h(
    Box,
    { bg: "bg", borderRadius: "lg", borderWidth: "1px", overflow: "hidden", ...rest },
    h(
      Flex,
      { align: "baseline", columnGap: 3, px: 4, py: 3, wrap: "wrap" },
      h(Heading, { as: "h3", size: "sm" }, title),
      note && h(Text, { color: "fg.muted", fontSize: "sm" }, note),
      action && h(Box, { ml: "auto" }, action),
    ),
    children,
  );
}

// It has no elements, and asks for nothing, before it is opened.
export function FoldedCard({ title, note, children, ...rest }) {
  const [open, setOpen] = useState(false);
  return h(
    Box,
    {
      as: "details",
      bg: "bg",
      borderRadius: "lg",
      borderWidth: "1px",
      onToggle: (event) => setOpen(event.currentTarget.open),
      overflow: "hidden",
      ...rest,
    },
    h(
      Box,
      { as: "summary", cursor: "pointer", fontSize: "sm", fontWeight: "semibold", px: 4, py: 3 },
      title,
      h(Text, { as: "span", color: "fg.muted", fontWeight: "normal", ml: 2 }, note),
    ),
    open && children,
  );
}

export function Columns({ names, rows }) {
  return h(
    Table.ScrollArea,
    null,
    h(
      Table.Root,
      {
        css: {
          "& th:first-of-type, & td:first-of-type": { paddingInlineStart: 4 },
          "& tr:last-of-type td": { borderBottomWidth: 0 },
          "& td": { overflowWrap: "break-word", whiteSpace: "normal" },
        },
        size: "sm",
      },
      h(
        Table.Header,
        null,
        h(
          Table.Row,
          null,
          names.map((name) => h(Table.ColumnHeader, { key: name }, name)),
        ),
      ),
      h(
        Table.Body,
        null,
        rows.map((cells, index) =>
          h(
            Table.Row,
            { key: index },
            cells.map((cell, column) => h(Table.Cell, { key: column, verticalAlign: "top" }, cell)),
          ),
        ),
      ),
    ),
  );
}

export function Notice({ palette, children, ...rest }) {
  return h(
    Box,
    {
      bg: `${palette}.subtle`,
      borderRadius: "lg",
      color: `${palette}.fg`,
      fontSize: "sm",
      px: 4,
      py: 3,
      whiteSpace: "pre-wrap",
      ...rest,
    },
    children,
  );
}

// In place of a tab: its first answer is under way, or there is none; `title` says what cannot be shown.
export function Nothing({ problem, title }) {
  if (problem === null) return h(Flex, { justify: "center", p: 10 }, h(Spinner, { "aria-label": "Loading" }));
  return h(
    Box,
    { "data-testid": "nothing", maxW: "720px", p: 8 },
    h(Heading, { as: "h2", mb: 2, size: "md" }, problem.status === 404 ? "Nothing of Stagehold here" : title),
    h(Text, { color: "fg.muted", whiteSpace: "pre-wrap" }, problem.message),
  );
}

// A run of Airflow is a link to its page.
export function RunName({ runId }) {
  const page = runPage(runId);
  return page ? h(Link, { href: page, textDecoration: "underline" }, runId) : runId;
}
