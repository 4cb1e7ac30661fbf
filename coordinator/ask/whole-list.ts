/** Sends all rows of a list as CSV, at a path of its own and filtered by an operation's question. */

import { Readable } from "node:stream";
import type { z } from "zod";
import { UsageError } from "#core/errors";
import { type CsvTable, csvText } from "../web/html.ts";
import type { WebPart } from "./add-operations.ts";
import { type AnyOperation, type Column, Fault } from "./operation.ts";
import { questionIn } from "./questions.ts";
import type { SentFile } from "./views.ts";
import { csvCell } from "./words.ts";

interface WholeList<In, Row> {
  readonly path: string;
  /** Names the file, such as `sites`. */
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  /** Reads the rows in pieces. Throws a UsageError or a Fault if the question is impossible. */
  readonly pieces: (input: In, now: Date) => Promise<AsyncIterable<readonly Row[]>>;
}

export function wholeList<In, Row>(
  operation: AnyOperation & { readonly input: z.ZodType<In> },
  { path, name, columns, pieces }: WholeList<In, Row>,
): WebPart {
  const files = new FileTurns();
  const fields = columns.map((column) => ({ name: column.key, of: (row: Row) => csvCell(column, row) }));
  return ({ views }) =>
    views.addFile({
      ...{ path, needs: operation.needs, boundedElsewhere: true },
      file: async (asked) => {
        const read = questionIn(operation, asked);
        if (read === null || typeof read === "string") return read;
        try {
          return files.csv({ name, columns: fields, pieces: await pieces(read.input as In, asked.now) });
        } catch (error) {
          if (error instanceof UsageError || error instanceof Fault) return error.message;
          throw error;
        }
      },
    });
}

// Whole lists are generated while they are sent. Their number is limited, because each causes work for as long as its reader
// takes.

const mostFilesAtOnce = 2;
/** Maximum duration: a million rows are 100 MB, which take this long at 170 KB/s. */
const mostFileMs = 600_000;
export const mostInFile = 1_000_000;

interface CsvColumn<One> {
  readonly name: string;
  readonly of: (one: One) => CsvTable["rows"][number][number];
}

interface CsvFile<One> {
  /** The list's name, such as `sites`. */
  readonly name: string;
  readonly columns: readonly CsvColumn<One>[];
  readonly pieces: AsyncIterable<readonly One[]>;
}

class FileTurns {
  #sending = 0;

  /** Returns a text if too many files are being sent already. */
  csv<One>(list: CsvFile<One>): SentFile | string {
    if (this.#sending >= mostFilesAtOnce)
      return `${mostFilesAtOnce} lists are being sent already. Try again when one has ended.`;
    this.#sending += 1;
    return {
      type: "text/csv; charset=utf-8",
      body: this.#until(Readable.from(linesOf(list))),
      headers: { "content-disposition": `attachment; filename="nearcrawl-${list.name}.csv"` },
    };
  }

  /** Frees the slot when the stream ends in any way. */
  #until(stream: Readable): Readable {
    const cut = setTimeout(() => stream.destroy(new Error("it was read too slowly")), mostFileMs).unref();
    return stream.once("close", () => {
      clearTimeout(cut);
      this.#sending -= 1;
    });
  }
}

/** If the list was cut, a last line says so. */
async function* linesOf<One>({ name, columns, pieces }: CsvFile<One>): AsyncGenerator<string> {
  yield csvText({ columns: columns.map((column) => column.name), rows: [] });
  let left = mostInFile;
  for await (const piece of pieces) {
    const rows = piece.slice(0, left).map((one) => columns.map(({ of }) => of(one)));
    yield csvText({ columns: [], rows }).slice(2);
    left -= rows.length;
    if (rows.length === piece.length) continue;
    yield `more than ${mostInFile} ${name}: the rest is left out\r\n`;
    return;
  }
}
