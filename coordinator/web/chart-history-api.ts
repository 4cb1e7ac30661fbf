/** The form of histories in answers of the API (core/chart-history), and the parameters that choose their range. */
import { z } from "zod";
import { chartUnits } from "#core/chart-history";
import { rangeNames } from "#core/time-range";
import { dateTime } from "./api-operation.ts";

const historyChart = z
  .strictObject({
    key: z.string(),
    title: z.string(),
    unit: z.enum(chartUnits).describe("share: 0 to 1."),
    times: z
      .array(dateTime())
      .describe("When what a value stands for begins, oldest first; 240 at most but for plans."),
    series: z.array(
      z.strictObject({
        name: z.string(),
        values: z.array(z.number().nullable()).describe("One for each of the times; null: not known."),
      }),
    ),
    whenEmpty: z.string().describe("Why nothing may be known."),
  })
  .meta({ id: "HistoryChart" });

export const chartHistorySchema = z
  .strictObject({
    at: dateTime(),
    since: dateTime(),
    until: dateTime(),
    range: z.string().nullable().describe("Null: chosen by since and until."),
    said: z
      .string()
      .nullable()
      .describe("Why another range is shown than was asked for; null: it is that one."),
    charts: z.array(historyChart),
    marks: z
      .array(
        z.strictObject({
          at: dateTime(),
          words: z.string(),
          link: z.string().nullable().describe("The page that tells more."),
        }),
      )
      .describe("Policies, releases, registry generations and crawlers that changed: the latest 50."),
    moreMarks: z.int().describe("Others of this time."),
  })
  .meta({ id: "ChartHistory" });

export const rangeParameters = {
  range: z
    .enum(rangeNames)
    .optional()
    .meta({ description: "Of the history: so far back from now; 24h where nothing is said.", example: "7d" }),
  since: z.string().max(40).optional().meta({
    description: "Of the history, in place of range: from then (ISO 8601; UTC where no zone is given).",
    example: "2026-03-01T10:00Z",
  }),
  until: z.string().max(40).optional().meta({ description: "And until then.", example: "2026-03-01T12:00Z" }),
};
