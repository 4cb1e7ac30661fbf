/**
 * An operation: one question or one deed with its address, its scope, what it takes and answers, and what the answer says.
 * Page, form, JSON, CSV, text, command and the API's description come from this one value.
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

/** What an operation is asked, once checked: `input` has the path's, the query's and the body's fields by their names. */
export interface Asked<Ports, In> {
  readonly input: In;
  readonly ports: Ports;
  readonly actor: Actor;
  readonly visit: Visit;
  readonly via: "page" | "api";
  readonly remoteAddress: string;
  readonly now: Date;
  /** A table whole is wanted, not a page of it. */
  readonly isCsv: boolean;
}

/** Who looks, and at what. */
export interface Seen<In> {
  readonly input: In;
  readonly viewer: Visit;
  readonly now: Date;
}

export interface Operation<Ports, In, Value> extends ApiOperation {
  /** Of its page or its form, as Fastify has it; null: it has none. */
  readonly page: string | null;
  /** Checks the fields of path, query and body together. */
  readonly input: z.ZodType<In>;
  /** Throws a Fault or a UsageError for what cannot be asked or done. Null: there is nothing of this name. */
  readonly run: (asked: Asked<Ports, In>) => Promise<Value | null>;
  /** Of a deed: left out where a sentence says all (`change`, `said`). */
  readonly view?: (value: Value, seen: Seen<In>) => Document;
  /** The page without a question. */
  readonly start?: (seen: Omit<Seen<In>, "input">) => Document;
  /** Of an answer that is none: 404. Left out: 200, or the first of `answers`. */
  readonly status?: (value: Value) => number;
  /** Of a deed, for the audit log; null: nothing was changed. */
  readonly change?: (value: Value) => Change | null;
  /** What a deed says; left out: the words of its change. */
  readonly said?: (value: Value) => string;
  /** What its button says, and the heading of its form once more; left out: the summary. */
  readonly label?: string;
  /** Where its form leads; left out: to its answer where `view` shows one, and else to the page that the form's path begins with. */
  readonly goTo?: (value: Value) => string;
  /** What a program gets, where it is not the whole value. */
  readonly told?: (value: Value) => unknown;
  /** What a form's fields mean as a body, where they are not its fields. */
  readonly fromForm?: (values: Readonly<Record<string, string>>) => unknown;
  readonly crawlerIn?: string;
  readonly partnersToo?: boolean;
  readonly mostBytes?: number;
  readonly titleWhileSlow?: string;
  readonly command?: Command;
}

/** How a terminal asks it: `list`, or with what a command has beside its operation. */
export interface Command {
  readonly name: string;
  /** Left out: the operation's summary. */
  readonly says?: string;
  /** Fields that are arguments, behind those of the path: `site`, or with dots where the last takes several words. */
  readonly takes?: string;
  /** Fields that no option has. */
  readonly without?: string;
  /** Options that are named otherwise than the fields: the option's name by the field's. */
  readonly named?: Readonly<Record<string, string>>;
  /** Of fields that are needed, what holds where nothing is typed. */
  readonly usual?: () => Readonly<Record<string, unknown>>;
  /** What follows, told on a terminal before it is done; the name has to be typed then. */
  readonly follows?: string;
  /** A database where nothing was set up yet is set up. */
  readonly setsUp?: true;
  /** It goes by the coordinator's file, which can be named. */
  readonly goesByFile?: true;
  readonly help?: string;
}

/** What was asked for cannot be had or done, in words for whoever asked. */
export class Fault extends Error {
  readonly status: 400 | 403 | 404 | 409 | 410 | 422 | 429 | 503;
  readonly title: string;
  /** Of a question: what else a page and programs are told. */
  readonly beside: Pick<PageError, "more" | "refreshSeconds">;
  /** The page that its form stands on, with what was typed and what is wrong with it; left out: of a deed the form alone. */
  again?: (viewer: Visit) => Document;

  constructor(status: Fault["status"], words: string, title?: string, beside: Fault["beside"] = {}) {
    super(words);
    this.status = status;
    this.title = title ?? (status === 404 ? "Not known" : "That cannot be done");
    this.beside = beside;
  }
}

/** Whatever its ports, question and answer are. */
// biome-ignore lint/suspicious/noExplicitAny: the types are those of whoever makes it.
export type AnyOperation = Operation<any, any, any>;

// A document: what an answer says, as a small tree, before it is a page, a text for a terminal or CSV. Prose and cells are `html`
// templates, which escape by default; text and CSV take the words out of them.

export interface Document {
  readonly title: string;
  /** Beside the heading of the page; null in place of a heading: the nodes have one. */
  readonly beside?: HtmlValue;
  readonly hasOwnHeading?: true;
  /** Pages that this one is below. */
  readonly above?: readonly (readonly [title: string, href: string])[];
  readonly nodes: readonly Node[];
  /** A page that looks again by itself after so long, while something is awaited. */
  readonly refreshSeconds?: number;
  /** What CSV has, where it is not the first table that is shown. */
  // biome-ignore lint/suspicious/noExplicitAny: a row's type is its columns' alone.
  readonly csv?: Pick<Table<any>, "columns" | "rows">;
}

/** A time is shown in the reader's zone on a page, in UTC elsewhere. */
export type Inline = HtmlValue | Date;

/** What a number counts: how it is written for people, by name or in words of its own. CSV has the number. */
export type Unit = "count" | "bytes" | "ms" | "seconds" | "share" | ((value: number) => string);

export interface Column<Row> {
  /** In CSV. Empty: for people alone, such as a column of links. */
  readonly key: string;
  /** Null: for CSV alone. */
  readonly title: string | null;
  readonly cell: (row: Row) => Inline | boolean;
  readonly unit?: Unit;
  /** What stands for people where nothing is known; left out: a dash. */
  readonly none?: string;
  /** Figures stand to the right; texts are wide, break anywhere, or not at all. */
  readonly kind?: "number" | "wide" | "break" | "wide break" | "nowrap" | "why" | "bar-column";
  /** On pages. */
  readonly link?: (row: Row) => string | null;
  /** Under the cell, in small letters; not in CSV. */
  readonly more?: (row: Row) => Inline;
  /** In CSV, where it is another value than the cell's. */
  readonly value?: (row: Row) => string | number | boolean | Date | null;
  /** On pages alone: pictures. */
  readonly isPicture?: true;
  /** On a terminal and in CSV: a number that commands take, where a page has buttons. */
  readonly offPage?: true;
  /** The order that its heading asks for, and which end of it people look for first. */
  readonly sort?: readonly [name: string, first: Direction];
}

export type Direction = "up" | "down";

/** A button that asks for an operation at once, or leads to its page where it only reads; only who may sees it. */
export interface Action {
  readonly operation: AnyOperation;
  /** Of the path. */
  readonly path?: Readonly<Record<string, string | number>>;
  /** Sent along. */
  readonly values?: Readonly<Record<string, string | number>>;
  /** Left out: the operation's own. */
  readonly label?: string;
  readonly kind?: "quiet" | "danger" | "plain";
  /** For what takes work away: it is done once this is typed. */
  readonly typed?: string;
}

export interface Table<Row> {
  readonly type: "table";
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** In place of a table without rows: what, and the next step; left out: "None." */
  readonly empty?: readonly [what: string, then: Inline] | undefined;
  readonly actions?: (row: Row) => readonly Action[];
  /** Rows on a page; CSV and JSON have all. */
  readonly most?: number;
  readonly kind?: string;
  /** In force, of columns that sort. */
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
  /** Side by side on a page, by the class; with a name, replaced as a whole while the page is looked at. */
  | { readonly type: "group"; readonly nodes: readonly Node[]; readonly kind: string; readonly live?: string }
  | { readonly type: "tabs"; readonly label: string; readonly tabs: readonly Tab[] }
  | { readonly type: "empty"; readonly what: string; readonly then: Inline }
  | { readonly type: "actions"; readonly actions: readonly Action[] }
  | Form
  | Filters
  | { readonly type: "pager"; readonly page: number; readonly more: boolean }
  /** To be copied as it is. */
  | { readonly type: "code"; readonly text: string }
  | Onward
  | { readonly type: "history"; readonly history: ChartHistory }
  | { readonly type: "picture"; readonly html: Html; readonly otherwise: string | Node };

export interface SectionLook {
  readonly id?: string;
  /** Class of its element. */
  readonly kind?: string;
  /** Closed until it is opened, on pages. */
  readonly isFolded?: boolean;
}

/** One of several views of the same thing. */
export interface Tab {
  readonly title: Inline;
  readonly href: string;
  readonly isCurrent: boolean;
}

export type Fact = readonly [name: string, value: Inline | boolean] | null | false;
export type Tile = readonly [name: string, figure: Inline, more?: Inline, href?: string] | null | false;

/** Of an operation that takes something, or that asks with a question; its fields are its schema's. Only who may sees it. */
export interface Form {
  readonly type: "form";
  readonly operation: AnyOperation;
  /** Left out: it stands in a row, without a heading. Empty: the page's heading is its own. */
  readonly title?: string;
  readonly words?: Inline;
  readonly label?: string;
  readonly path?: Readonly<Record<string, string | number>>;
  /** What stands in the fields. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** Fields that are not shown; those with a value are sent along. */
  readonly without?: readonly string[];
  /** What a field may have, and in which words, where only the answer knows. */
  readonly choices?: Choices;
  /** For what takes work away: it is done once this is typed. */
  readonly typed?: string;
  readonly kind?: "danger";
  /** What is wrong with what was typed. */
  readonly fault?: string;
}

/** From one part of a list to the next, where the answer says how it goes on. */
export interface Onward {
  readonly type: "onward";
  /** Null: this was the last part. */
  readonly next: string | number | null;
  readonly words: string;
  /** The parameter that takes `next`; left out: after. */
  readonly name?: string;
  /** The command's option, where it is named otherwise. */
  readonly option?: string;
  /** Back to where it begins; left out: "First page". */
  readonly first?: string;
}

/** By the field's name the words of each value. */
export type Choices = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The fields of the question that narrow this answer, with a chip for each that does. */
export interface Filters {
  readonly type: "filters";
  readonly names: readonly string[];
  /** Of values that are chosen from a list: their words, or the list itself where the schema has none. */
  readonly choices?: Choices;
  /** What stands in the address beside it from now on, where the answer has settled it. */
  readonly also?: Readonly<Record<string, string>>;
  /** How its chip says a value that people type as a code, such as that of a country. */
  readonly shown?: Readonly<Record<string, (value: string) => string>>;
  /** For who hears the page. */
  readonly label: string;
}

// Making operations.

interface Given<Ports, In extends z.ZodObject, Out extends z.ZodType, Value extends ToldValue<z.infer<Out>>>
  extends Omit<
    Operation<Ports, z.infer<In>, Value>,
    "method" | "page" | "input" | "parameters" | "body" | "answers"
  > {
  /** Left out: the API's path without /api. */
  readonly page?: string | null;
  readonly input: In;
  readonly output: Out;
  /** A body that is sent, for the description. */
  readonly example?: unknown;
  /** Of the answer: what is in it, its status, and an example. */
  readonly answer?: {
    readonly status?: 200 | 201 | 202;
    readonly description?: string;
    readonly example?: unknown;
  };
  /** Faults of its own; 400, 401, 403 and 429 follow from input and scope. */
  readonly faults?: Readonly<Record<number, string>>;
  /** Further answers, such as 404 with a body. */
  readonly answers?: Readonly<Record<number, ApiAnswer>>;
}

/** As a store gives it: read only, with times as Dates. */
export type ToldValue<Value> = [Date] extends [Value]
  ? Value
  : Value extends readonly (infer One)[]
    ? readonly ToldValue<One>[]
    : Value extends object
      ? { readonly [Name in keyof Value]: ToldValue<Value[Name]> }
      : Value;

/** Operations of a room that reach its stores by these ports. */
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
