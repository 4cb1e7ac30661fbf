/** Settings of the change feed. */
import { z } from "zod";
import { type DeepReadonly, policy } from "../../core/policy.ts";

export const changeSettings = z.strictObject({
  keepDays: policy(z.number().min(1).max(3650).default(30), {
    title: "Keep changes for",
    basic: true,
    help: "How long changes can be read after they were recorded. A reader that was away longer has to start over.",
    unit: "days",
    origin: "our judgement, a reader that is away for a month starts over anyway",
  }),
});

export type ChangeSettings = DeepReadonly<z.infer<typeof changeSettings>>;
