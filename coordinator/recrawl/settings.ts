/** The settings of recrawl: in the coordinator's file, and as policies that operators change while it runs. */
import { z } from "zod";
import { seconds } from "#core/setting-fields";
import { leastChangesPerDay, mostChangesPerDay, usualChangesPerDay } from "./change-rate.ts";
import { defaultRateBounds, recrawlStrategies } from "./recrawl-plan.ts";

export const recrawlSettings = z.strictObject({
  intervalHours: z
    .number()
    .positive()
    .max(24 * 3650)
    .default(24 * 7),
  /** recrawl/recrawl-plan. */
  strategy: z.enum(recrawlStrategies).default("fixed"),
  /** Of `optimal`: as many fetches as `intervalHours` for every page comes to, or all that the fleet is found to manage. */
  total: z.enum(["interval", "capacity"]).default("interval"),
  /** Priority groups of iir and icr; SARSS section 4 has 5. */
  groups: z.int().min(2).max(20).default(5),
  /** δ: a group that succeeds more often than before is tried at an interval so much shorter. */
  encourageRate: z.number().min(0.1).max(0.999).default(0.9),
  /** σ and μ of checkPriorities: bounds on an interval, in that of the more urgent group before it. */
  smallestMultiple: z.number().min(1).max(100).default(1.1),
  biggestMultiple: z.number().min(1).max(1000).default(4),
  /** No page is fetched more often than this, however often it changes, nor less often than `longestDays`. */
  shortestHours: z
    .number()
    .positive()
    .max(24 * 365)
    .default(1),
  longestDays: z.number().positive().max(3650).default(60),
  /** SARSS section 4.3 has an upper limit such as 2 times the change frequency; why it is larger here: defaultRateBounds. */
  visitsPerChange: z.number().min(0.1).max(100).default(defaultRateBounds.visitsPerChange),
  usualChangesPerDay: z.number().min(leastChangesPerDay).max(mostChangesPerDay).default(usualChangesPerDay),
  /** How often it is looked whether intervals are to be made anew. */
  everySeconds: seconds(86_400).default(600),
});

export type RecrawlPolicies = Readonly<z.infer<typeof recrawlSettings>>;
