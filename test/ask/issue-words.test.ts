/** zod's findings in words without type names. */
import { expect, it } from "vitest";
import { z } from "zod";
import { issueWords } from "#coordinator/ask/fields";

it.each([
  [z.string(), undefined, "is missing"],
  [z.string().min(1), "", "is missing"],
  [z.array(z.string()).min(1), [], "is missing"],
  [z.number(), "soon", "must be a number"],
  [z.int(), 1.5, "must be a whole number"],
  [z.number().max(3600), 99_999, "must be at most 3600"],
  [z.number().min(1), -1, "must be at least 1"],
  [z.number().gt(0), 0, "must be more than 0"],
  [z.string().min(3), "a", "needs at least 3 characters"],
  [z.string().max(2), "abc", "has more than 2 characters"],
  [z.enum(["a", "b"]), "c", "must be one of a, b"],
  [z.strictObject({}), { x: 1 }, "has no field x"],
  [z.string("ask with ?q="), undefined, "ask with ?q="],
  [z.string().refine((text) => text === "a", "is not a"), "b", "is not a"],
])("%# says it in words", (schema, value, words) => {
  const issues = schema.safeParse(value).error?.issues ?? [];

  expect(issues.map(issueWords)).toEqual([words]);
});
