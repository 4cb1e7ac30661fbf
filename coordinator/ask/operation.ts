/**
 * An operation is one question or action with its path, scope, input, output and view. Page, form, JSON, CSV, text, command
 * and API description are derived from this value.
 */
import { z } from "zod";
import type { Actor } from "#core/actor";
import type { Change } from "#core/audit";
import type { Visit } from "../web/access.ts";
import {
  type ApiAnswer,
  type ApiOperation,
  answer,
  errorAnswer,
  type HttpMethod,
} from "../web/api-operation.ts";
import type { ChartHistory } from "../web/chart-history.ts";
import type { Html, HtmlValue } from "../web/html.ts";
import type { PageError } from "../web/page-frame.ts";

/** A checked question. `input` holds the fields of path, query and body by their names. */
export interface Asked<Ports, In> {
  readonly input: In;
  readonly ports: Ports;
  readonly actor: Actor;
  readonly visit: Visit;
  readonly via: "page" | "api";
  readonly remoteAddress: string;
  /** The client's address, or null if it is unknown because a proxy does not state it. */
  readonly requester: string | null;
  readonly now: Date;
  /** Whether CSV is wanted, which needs the whole table rather than one page of it. */
  readonly isCsv: boolean;
}

/** The reader and the question that the document answers. */
export interface Seen<In> {
  readonly input: In;
  readonly viewer: Visit;
  readonly now: Date;
}

export interface Operation<Ports, In, Value> extends ApiOperation {
  /** The route of its page or form, in Fastify's spelling (`/sites/:host`); null if it has neither. */
  readonly page: string | null;
  /** Checks the fields of path, query and body together. */
  readonly input: z.ZodType<In>;
  /** Throws a Fault or a UsageError for a question or action that is impossible. Returns null when nothing has this name. */
  readonly run: (asked: Asked<Ports, In>) => Promise<Value | null>;
  /**
   * Makes the document of an answer. An operation that changes something needs none if a sentence (`change`, `said`)
   * suffices.
   */
  readonly view?: (value: Value, seen: Seen<In>) => Document;
  /** The page that is shown when no question was asked. */
  readonly start?: (seen: Omit<Seen<In>, "input">) => Document;
  /** The status of an answer, such as 404 if nothing was found. Default: the first that `answers` describes. */
  readonly status?: (value: Value) => number;
  /** The entry for the audit log; null if nothing was changed. */
  readonly change?: (value: Value) => Change | null;
  /** The sentence that says what was done. Default: the words of its change. */
  readonly said?: (value: Value) => string;
  /** The text on its button, and the heading when its form is shown again. Default: the summary. */
  readonly label?: string;
  /** The page after its form. Default: the answer that `view` shows, or else the page whose path the form's path begins with. */
  readonly goTo?: (value: Value) => string;
  /** The value for programs, if it differs. */
  readonly told?: (value: Value) => unknown;
  /** Makes the body from form fields, if the two differ. */
  readonly fromForm?: (values: Readonly<Record<string, string>>) => unknown;
  /** Anybody may send its form. Without a session there is no form token, so a form from another site's page is refused. */
  readonly isOpen?: true;
  readonly crawlerIn?: string;
  readonly partnersToo?: boolean;
  readonly mostBytes?: number;
  readonly titleWhileSlow?: string;
  readonly command?: Command | readonly Command[];
}

/** The command of an operation, with what only commands need. */
export interface Command {
  /** One or two words after `nearcrawl`. */
  readonly name: string;
  /** The description of the common command, if that does nothing itself. One of its commands states it. */
  readonly group?: { readonly says: string; readonly help?: string };
  /** Default: the operation's summary. */
  readonly says?: string;
  /** The fields that are arguments, after those of the path. If an ellipsis follows, the last one may have several words. */
  readonly takes?: string;
  /** Fields that the command does not offer. */
  readonly without?: string;
  /** The names of options that differ from their fields', by the field's name. */
  readonly named?: Readonly<Record<string, string>>;
  /** Defaults of required fields. `user` is the caller's name. */
  readonly usual?: (user: string) => Readonly<Record<string, unknown>>;
  /** Makes the body from the input, if it is not simply the fields. */
  readonly body?: (words: readonly string[], options: Readonly<Record<string, unknown>>) => unknown;
  /** If present, only the section of the answer with this id is printed. */
  readonly part?: string;
  /** The consequences, which a terminal shows before it asks for the name to be typed as confirmation. */
  readonly follows?: string;
  /** It may set up an empty database. */
  readonly setsUp?: true;
  /** It reads the coordinator's settings file, which --config may name. */
  readonly goesByFile?: true;
  readonly help?: string;
}

/** Explains to the user why something cannot be shown or done. */
export class Fault extends Error {
  readonly status: 400 | 403 | 404 | 409 | 410 | 422 | 429 | 503;
  readonly title: string;
  /** Additions to the error page of a question. */
  readonly beside: Pick<PageError, "more" | "refreshSeconds">;
  /** Makes the form's page with the input and the fault. If absent, the form is shown alone. */
  again?: (viewer: Visit) => Document;

  constructor(status: Fault["status"], words: string, title?: string, beside: Fault["beside"] = {}) {
    super(words);
    this.status = status;
    this.title = title ?? (status === 404 ? "Not known" : "That cannot be done");
    this.beside = beside;
  }
}

/** An operation with any ports, question and answer. */
// biome-ignore lint/suspicious/noExplicitAny: the operation's author states the types.
export type AnyOperation = Operation<any, any, any>;

// A document is the content of an answer as a small tree, from which pages, terminal text and CSV are rendered. Prose and
// cells are `html` templates, which escape by default. Text and CSV use only their words.

export interface Document {
  readonly title: string;
  /** Content next to the page's heading. */
  readonly beside?: HtmlValue;
  readonly hasOwnHeading?: true;
  /** Links to the pages above this one. */
  readonly above?: readonly (readonly [title: string, href: string])[];
  readonly nodes: readonly Node[];
  /** The page reloads after this many seconds while something is awaited. */
  readonly refreshSeconds?: number;
  /** The table for CSV, if that is not the first table of the document. */
  // biome-ignore lint/suspicious/noExplicitAny: a row's type is its columns' alone.
  readonly csv?: Pick<Table<any>, "columns" | "rows">;
}

/** Prose or a value. A Date is shown in the reader's time zone on a page, and in UTC elsewhere. */
export type Inline = HtmlValue | Date;

/** The unit in which a number is shown to people, or a function that formats it. CSV has the plain number. */
export type Unit = "count" | "bytes" | "ms" | "seconds" | "share" | ((value: number) => string);

export interface Column<Row> {
  /** The name of the column in CSV; empty if CSV does not have the column. */
  readonly key: string;
  /** The heading; null if only CSV has the column. */
  readonly title: string | null;
  readonly cell: (row: Row) => Inline | boolean;
  readonly unit?: Unit;
  /** Shown if the value is unknown. Default: a dash. */
  readonly none?: string;
  /** The layout of the cells: figures align right; texts are wide, break anywhere, or never break. */
  readonly kind?:
    | "number"
    | "number wide"
    | "wide"
    | "break"
    | "wide break"
    | "nowrap"
    | "why"
    | "bar-column";
  /** The path that the cell links to on a page. */
  readonly link?: (row: Row) => string | null;
  /** Small print below the value of the cell. CSV leaves it out. */
  readonly more?: (row: Row) => Inline;
  /** The value in CSV, if it differs from the cell's. */
  readonly value?: (row: Row) => string | number | boolean | Date | null;
  /** Set if the cell is a picture, which only pages show. */
  readonly isPicture?: true;
  /** Set if pages omit the column, such as a number that commands take, for which a page has buttons. */
  readonly offPage?: true;
  /** The order to which its heading links, and the direction in which people usually want it. */
  readonly sort?: readonly [name: string, first: Direction];
}

export type Direction = "up" | "down";

/** A button that runs an operation at once, or links to its page if it only reads. Readers without the right do not see it. */
export interface Action {
  readonly operation: AnyOperation;
  /** The values of the path. */
  readonly path?: Readonly<Record<string, string | number>>;
  /** Further values that are sent. */
  readonly values?: Readonly<Record<string, string | number>>;
  /** The text of the button. Default: the operation's label. */
  readonly label?: string;
  readonly kind?: "quiet" | "danger" | "plain";
  /** Text that must be typed first, because this is destructive. */
  readonly typed?: string;
}

export interface Table<Row> {
  readonly type: "table";
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Replaces an empty table, with the next step. Default: "None." */
  readonly empty?: readonly [what: string, then: Inline] | undefined;
  readonly actions?: (row: Row) => readonly Action[];
  /** Maximum number of rows on a page. CSV and JSON have all of them. */
  readonly most?: number;
  readonly kind?: string;
  /** The current order, if columns can be sorted. */
  readonly order?: { readonly sort: string; readonly direction: Direction };
}

export type Node =
  | {
      readonly type: "words";
      readonly kind: "lead" | "note" | "plain" | "aside" | "warning";
      readonly words: Inline;
    }
  | { readonly type: "facts"; readonly facts: readonly Fact[] }
  | { readonly type: "tiles"; readonly tiles: readonly Tile[]; readonly kind: string }
  // biome-ignore lint/suspicious/noExplicitAny: a row's type is its columns' alone.
  | Table<any>
  | { readonly type: "list"; readonly items: readonly Inline[]; readonly kind: string }
  | ({ readonly type: "section"; readonly title: Inline; readonly nodes: readonly Node[] } & SectionLook)
  /** Nodes in an element of this class. If `live` names it, live updates replace it as a whole. */
  | { readonly type: "group"; readonly nodes: readonly Node[]; readonly kind: string; readonly live?: string }
  | { readonly type: "tabs"; readonly label: string; readonly tabs: readonly Tab[] }
  | { readonly type: "empty"; readonly what: string; readonly then: Inline }
  | { readonly type: "actions"; readonly actions: readonly Action[] }
  | Form
  | Filters
  | { readonly type: "pager"; readonly page: number; readonly more: boolean }
  /** Text that people copy without changing it. */
  | { readonly type: "code"; readonly text: string }
  | Onward
  | { readonly type: "history"; readonly history: ChartHistory }
  | { readonly type: "picture"; readonly html: Html; readonly otherwise: string | (() => string) | Node };

export interface SectionLook {
  readonly id?: string;
  /** The class of its element. */
  readonly kind?: string;
  /** Whether a page shows it closed until it is opened. */
  readonly isFolded?: boolean;
}

/** A link to one of several views of the same thing. */
export interface Tab {
  readonly title: Inline;
  readonly href: string;
  readonly isCurrent: boolean;
}

export type Fact = readonly [name: string, value: Inline | boolean] | null | false;
export type Tile = readonly [name: string, figure: Inline, more?: Inline, href?: string] | null | false;

/** The form of an operation, with the fields of its schema. Readers without the right do not see it. */
export interface Form {
  readonly type: "form";
  readonly operation: AnyOperation;
  /** Its heading. If absent, the form is in a row; if empty, the page's heading suffices. */
  readonly title?: string;
  readonly words?: Inline;
  readonly label?: string;
  readonly path?: Readonly<Record<string, string | number>>;
  /** The values in the fields. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** Fields that are hidden; their values are still sent. */
  readonly without?: readonly string[];
  /** The choices of a field, if only the answer knows them. */
  readonly choices?: Choices;
  /** Text that must be typed first, because this is destructive. */
  readonly typed?: string;
  readonly kind?: "danger";
  /** What is wrong with the input. */
  readonly fault?: string;
}

/** Links one part of a list to the next by the answer's cursor. */
export interface Onward {
  readonly type: "onward";
  /** The cursor; null if this is the last part. */
  readonly next: string | number | null;
  readonly words: string;
  /** The parameter that takes the cursor. Default: `after`. */
  readonly name?: string;
  /** The option of the command, if its name differs from the parameter's. */
  readonly option?: string;
  /** The text of the link to the beginning. Default: "First page". */
  readonly first?: string;
  /** The cursor of the previous part, to which a link leads instead of the beginning; null if that part is the beginning. */
  readonly before?: string | number | null;
  /** The section of the page that its links lead to. */
  readonly part?: string;
}

/** The words for each value, by the field's name. */
export type Choices = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A form with the fields that filter the answer, and a chip for each that is in use. */
export interface Filters {
  readonly type: "filters";
  readonly names: readonly string[];
  /** The words for a list's values, or the list itself if the schema has none. */
  readonly choices?: Choices;
  /** Parameters that the links keep, because the answer has chosen their values. */
  readonly also?: Readonly<Record<string, string>>;
  /** What a chip shows if the value is a code, such as a country's. */
  readonly shown?: Readonly<Record<string, (value: string) => string>>;
  /** The form's name for screen readers. */
  readonly label: string;
}

/** The content type of forms. */
export const formType = "application/x-www-form-urlencoded";

interface Given<Ports, In extends z.ZodObject, Out extends z.ZodType, Value extends ToldValue<z.infer<Out>>>
  extends Omit<
    Operation<Ports, z.infer<In>, Value>,
    "method" | "page" | "input" | "parameters" | "body" | "answers"
  > {
  /** The route of its page or form. Default: the API's path without /api. */
  readonly page?: string | null;
  readonly input: In;
  readonly output: Out;
  /** An example of a body, for the API description. */
  readonly example?: unknown;
  /** The description, status and example of the answer. */
  readonly answer?: {
    readonly status?: 200 | 201 | 202;
    readonly description?: string;
    readonly example?: unknown;
  };
  /** Its own faults by status. 400, 401, 403 and 429 are added according to input and scope. */
  readonly faults?: Readonly<Record<number, string>>;
  /** Further answers, such as a 404 with a body. */
  readonly answers?: Readonly<Record<number, ApiAnswer>>;
}

/** A value as a store returns it: read-only, with Dates rather than texts. */
type ToldValue<Value> = [Date] extends [Value]
  ? Value
  : Value extends readonly (infer One)[]
    ? readonly ToldValue<One>[]
    : Value extends object
      ? { readonly [Name in keyof Value]: ToldValue<Value[Name]> }
      : Value;

/** Makes the operations of a room, which access its stores through these ports. */
export function operationsOf<Ports>() {
  const made =
    (method: HttpMethod) =>
    <In extends z.ZodObject, Out extends z.ZodType, Value extends ToldValue<z.infer<Out>>>(
      given: Given<Ports, In, Out, Value>,
    ): Operation<Ports, z.infer<In>, Value> => {
      const { output, example, answer: of = {}, faults = {}, answers = {}, input, ...rest } = given;
      const inPath = [...given.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
      const [path, others] = parted(input.shape, inPath);
      const hasQuestion = method === "get" && Object.keys(others).length > 0;
      const good = {
        ...answer(output, of.description),
        ...(of.example === undefined ? {} : { example: of.example }),
      };
      return {
        page: given.path.replace(/^\/api/, "").replace(/\{(\w+)\}/g, ":$1"),
        ...rest,
        ...{ method, input },
        parameters: { path, ...(method === "get" ? { query: others } : {}) },
        ...(method === "get"
          ? {}
          : {
              body: {
                schema: z.strictObject(others),
                ...(example === undefined ? {} : { example }),
                ...(rest.isOpen && { type: formType }),
              },
            }),
        answers: {
          [of.status ?? 200]: good,
          ...(hasQuestion ? { 400: errorAnswer("A parameter is not as described") } : {}),
          ...Object.fromEntries(
            Object.entries(faults).map(([status, words]) => [status, errorAnswer(words)]),
          ),
          ...answers,
        },
      } as unknown as Operation<Ports, z.infer<In>, Value>;
    };
  return { get: made("get"), post: made("post") };
}

function parted(shape: z.ZodRawShape, inPath: readonly string[]) {
  const isInPath = ([name]: readonly [string, unknown]) => inPath.includes(name);
  const all = Object.entries(shape);
  return [
    Object.fromEntries(all.filter(isInPath)),
    Object.fromEntries(all.filter((one) => !isInPath(one))),
  ] as const;
}
