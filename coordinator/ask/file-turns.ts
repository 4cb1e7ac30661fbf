/**
 * Whole lists as CSV, generated while they are sent. Their number is bounded, because each makes work for as long as its reader
 * takes.
 */
import { Readable } from "node:stream";
import { type CsvTable, csvText } from "../web/html.ts";
import type { SentFile } from "./views.ts";

const mostFilesAtOnce = 2;
/** A million rows are 100 MB, which takes this long at 170 KB/s. */
const mostFileMs = 600_000;
export const mostInFile = 1_000_000;

interface CsvColumn<One> {
  readonly name: string;
  readonly of: (one: One) => CsvTable["rows"][number][number];
}

interface WholeList<One> {
  /** The list's name, such as `sites`. */
  readonly name: string;
  readonly columns: readonly CsvColumn<One>[];
  readonly pieces: AsyncIterable<readonly One[]>;
}

export class FileTurns {
  #sending = 0;

  /** Returns a text when too many files are being sent already. */
  csv<One>(list: WholeList<One>): SentFile | string {
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

/** A last line states in words where the list was cut. */
async function* linesOf<One>({ name, columns, pieces }: WholeList<One>): AsyncGenerator<string> {
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
