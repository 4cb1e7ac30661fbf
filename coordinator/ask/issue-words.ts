/** Says what is wrong with an input in a sentence; zod's own messages name types and operators. */
import type { z } from "zod";

/** Matches zod's own messages; a schema's own text is kept. */
const zodsOwn = /^(Invalid (input|option|string|key)|Too (big|small)|Unrecognized key)/;

const kinds: Readonly<Record<string, string>> = {
  number: "a number",
  int: "a whole number",
  string: "a text",
  boolean: "yes or no",
  array: "a list",
  object: "an object",
};

export function issueWords(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_value") return `must be one of ${issue.values.join(", ")}`;
  if (issue.code === "custom" || !zodsOwn.test(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      if (/received undefined$/.test(issue.message)) return "is missing";
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "too_small":
      if (issue.origin === "string" || issue.origin === "array")
        return Number(issue.minimum) <= 1
          ? "is missing"
          : `needs at least ${issue.minimum} ${unitOf(issue.origin)}`;
      return `must be ${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}`;
    case "too_big":
      if (issue.origin === "string" || issue.origin === "array")
        return `has more than ${issue.maximum} ${unitOf(issue.origin)}`;
      return `must be ${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}`;
    case "unrecognized_keys":
      return `has no field ${issue.keys.join(", ")}`;
    default:
      return issue.message;
  }
}

const unitOf = (origin: string) => (origin === "string" ? "characters" : "entries");
