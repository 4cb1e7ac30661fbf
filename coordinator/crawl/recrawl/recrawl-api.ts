/** API schemas of recrawl plans. */
import { z } from "zod";
import { dateTime } from "../../web/api-operation.ts";
import { chartHistorySchema } from "../../web/chart-history.ts";
import { recrawlStrategies } from "./recrawl-plan.ts";

export const recrawlGroup = z
  .strictObject({
    channels: z.int().describe("Configured channels, and hosts outside of any"),
    pages: z.number(),
    changesPerDay: z.number().describe("Mean of its channels"),
    initialSeconds: z.number().describe("From the change rates alone"),
    intervalSeconds: z.number(),
    successRate: z
      .number()
      .describe("Share of the tasks handed out since the previous plan that succeeded; 0 at first"),
  })
  .meta({ id: "RecrawlGroup" });

export const recrawlPlan = z
  .strictObject({
    madeAt: dateTime(),
    strategy: z.enum(recrawlStrategies),
    reason: z.string(),
    since: dateTime().describe("When this strategy took effect"),
    pages: z.number().describe("Pages whose changes are estimated"),
    allowedPerDay: z.number().describe("Fetches per day that the budgets of online crawlers allow"),
    capacityPerDay: z
      .number()
      .nullable()
      .describe("Measured capacity in fetches of known pages per day; null: the strategy does not use it"),
    plannedPerDay: z.number().nullable(),
    achievedPerDay: z.number().nullable().describe("As measured before the plan"),
    correction: z.number().describe("Factor on the planned total, since fewer or more fetches came true"),
    freshness: z
      .number()
      .nullable()
      .describe("Expected share of pages whose stored copy is the current one, by importance"),
    multiplier: z.number().nullable().describe("Of optimal: what one more fetch per day adds, everywhere"),
    groups: z.array(recrawlGroup).describe("Of iir and icr, those that change most first"),
  })
  .meta({ id: "RecrawlPlan" });

export const recrawlAnswer = z
  .strictObject({ now: dateTime(), plans: z.array(recrawlPlan), history: chartHistorySchema })
  .meta({ id: "RecrawlAnswer" });
