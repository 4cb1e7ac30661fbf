/** /find and /api/find: everything that can be opened, by a part of its name. */
import type { WebPart } from "../web/actions.ts";
import { type FindReads, find, questionFault } from "./find.ts";
import { findApi } from "./find-api.ts";
import { findBody } from "./find-page.ts";

export function findRoutes(reads: FindReads): WebPart {
  return ({ views }) => {
    views.describe({
      path: "/find",
      operation: findApi.find,
      view: async ({ query, visit }) => {
        const question = query("q");
        const fault = questionFault(question);
        if (fault !== null) return fault;
        const answer = await find(question, visit.actor, reads);
        const title = answer.question === "" ? "Find" : `${answer.question.slice(0, 60)} · Find`;
        return { status: 200, value: answer, title, body: () => findBody(answer) };
      },
    });
  };
}
