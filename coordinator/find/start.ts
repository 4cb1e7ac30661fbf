/** /find and /api/find: everything that can be opened, by a part of its name. */
import type { Pool } from "pg";
import type { WebPart } from "../web/actions.ts";
import { find, questionFault } from "./find.ts";
import { findApi } from "./find-api.ts";
import { findBody } from "./find-page.ts";
import { createFindReads } from "./find-reads.ts";

export function findPart(pool: Pool): WebPart {
  const reads = createFindReads(pool);
  return ({ views }) => {
    views.describe({
      path: "/find",
      operation: findApi.find,
      view: async ({ query, visit }) => {
        const question = query("q");
        const fault = questionFault(question);
        if (fault !== null) return fault;
        const value = await find(question, visit.actor, reads);
        const title = value.question === "" ? "Find" : `${value.question.slice(0, 60)} · Find`;
        return { status: 200, value, title, body: () => findBody(value) };
      },
    });
  };
}
