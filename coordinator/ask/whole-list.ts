/** Sends all rows of a list as CSV, at an address of its own and filtered by the question of an operation. */
import type { z } from "zod";
import { UsageError } from "#core/errors";
import { FileTurns } from "./file-turns.ts";
import { type AnyOperation, type Column, Fault } from "./operation.ts";
import { questionIn } from "./questions.ts";
import type { WebPart } from "./web-part.ts";
import { csvCell } from "./words.ts";

interface WholeList<In, Row> {
  readonly path: string;
  /** Names the file, such as `sites`. */
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  /** Reads the rows, some at a time. Throws a UsageError or a Fault for what cannot be asked. */
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
