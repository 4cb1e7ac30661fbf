/** Short names for making the nodes of a document, such as `lead`, `table` and `section`. */
import type { ChartHistory } from "../web/chart-history.ts";
import type { Html } from "../web/html.ts";
import type {
  Action,
  Column,
  Fact,
  Filters,
  Form,
  Inline,
  Node,
  Onward,
  SectionLook,
  Tab,
  Table,
  Tile,
} from "./operation.ts";

export const lead = (words: Inline): Node => ({ type: "words", kind: "lead", words });
/** Explains how to read or use the page. Shown on pages only. */
export const note = (words: Inline): Node => ({ type: "words", kind: "note", words });
/** A warning that must not be overlooked. */
export const warning = (words: Inline): Node => ({ type: "words", kind: "warning", words });
export const plain = (words: Inline): Node => ({ type: "words", kind: "plain", words });
/** Small print of the answer, shown on terminals too. */
export const aside = (words: Inline): Node => ({ type: "words", kind: "aside", words });
export const facts = (...all: readonly Fact[]): Node => ({ type: "facts", facts: all });
export const tiles = (all: readonly Tile[], kind = ""): Node => ({ type: "tiles", tiles: all, kind });
export const list = (items: readonly Inline[], kind = "plain"): Node => ({ type: "list", items, kind });
export const empty = (what: string, then: Inline = ""): Node => ({ type: "empty", what, then });
export const code = (text: string): Node => ({ type: "code", text });
export const history = (one: ChartHistory): Node => ({ type: "history", history: one });
export const actions = (...all: readonly (Action | null | false)[]): Node => ({
  type: "actions",
  actions: all.filter((one) => one !== null && one !== false),
});
export const form = (one: Omit<Form, "type">): Node => ({ type: "form", ...one });
export const filters = (one: Omit<Filters, "type">): Node => ({ type: "filters", ...one });
/** The links between a list's pages. A list with one page has none. */
export const pager = (page: number, more: boolean): Node => ({ type: "pager", page, more });
export const onward = (one: Omit<Onward, "type">): Node => ({ type: "onward", ...one });
/** Only pages show `html`. Terminals and CSV get `otherwise`; if that is a function, it is called only for a terminal. */
export const picture = (html: Html, otherwise: string | (() => string) | Node = ""): Node => ({
  type: "picture",
  html,
  otherwise,
});
export const table = <Row>(one: Omit<Table<Row>, "type">): Node => ({ type: "table", ...one });
export const section = (
  title: Inline,
  nodes: readonly (Node | null | false)[],
  look: SectionLook = {},
): Node => ({ type: "section", title, nodes: present(nodes), ...look });
/** A section that a page shows closed, because it is long and of interest to few. */
export const folded = (
  title: Inline,
  nodes: readonly (Node | null | false)[],
  look: SectionLook = {},
): Node => section(title, nodes, { ...look, isFolded: true });
export const group = (kind: string, nodes: readonly (Node | null | false)[]): Node => ({
  ...{ type: "group", kind, nodes: present(nodes) },
});
/** A part of a page that is replaced as a whole while the page is open. */
export const region = (live: string, nodes: readonly Node[]): Node => ({
  ...{ type: "group", kind: "", live, nodes },
});
export const tabs = (label: string, all: readonly Tab[]): Node => ({ type: "tabs", label, tabs: all });

/** Leaves out the nodes whose condition did not hold. */
export const present = (nodes: readonly (Node | null | false)[]): readonly Node[] =>
  nodes.filter((one) => one !== null && one !== false);

export const column = <Row>(
  key: string,
  title: string | null,
  cell: Column<Row>["cell"],
  more: Omit<Column<Row>, "key" | "title" | "cell"> = {},
): Column<Row> => ({ key, title, cell, ...more });

/** CSV columns for members of a row. `keyOf` names a column (default: the member's name). */
export const recordColumns = <Row>(
  names: readonly (keyof Row & string)[],
  keyOf: (name: string) => string = (name) => name,
): readonly Column<Row>[] => names.map((name) => member(name, null, { key: keyOf(name) }));

/** Turns `urlsPerMinute` into `urls_per_minute`. */
export const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A column for a member of a row. CSV gets the plain value, whatever `cell` shows. A column without a title is only in CSV. */
export const member = <Row>(
  name: keyof Row & string,
  title: string | null = null,
  more: Partial<Column<Row>> = {},
): Column<Row> => ({
  ...{ key: snakeCase(name), title, cell: (row) => row[name] as Inline },
  ...{ value: (row) => row[name] as string, ...more },
});

/** Columns of counts, one for each member of a row, with the given titles. */
export const countColumns = <Row>(
  titles: Readonly<Partial<Record<keyof Row & string, string>>>,
): readonly Column<Row>[] =>
  (Object.entries(titles) as [keyof Row & string, string][]).map(([name, title]) =>
    member(name, title, { unit: "count" }),
  );
