/** Alerts as the API tells them. */
import { z } from "zod";
import { dateTime, orNull, record } from "../../../web/api-operation.ts";
import { alertSeverities } from "../alert-facts.ts";
import { alertNames } from "../alert-rules.ts";

export const alertSchema = record("Alert", {
  name: z.enum(alertNames),
  severity: z.enum(alertSeverities),
  words: z.string().describe("What is the matter."),
  advice: z.string().describe("What to do."),
  link: z.string().describe("The page with what is behind it."),
  targets: z
    .array(z.string())
    .describe("Crawlers or releases that it is about, the worst first; five at most."),
  count: z.int().describe("How many it is about; 1 when it is about the crawl as a whole."),
  since: dateTime().nullable().describe("Null: not noted yet; it is looked every ten seconds."),
  toldAt: orNull(dateTime(), "When it was last sent to the channels; null: not yet, or it is not to be."),
});

const mutedAlert = alertSchema
  .extend({
    ...{ until: dateTime(), reason: z.string(), mutedBy: z.string() },
    mutedTarget: z.string().nullable().describe("Null: all of the rule."),
  })
  .meta({ id: "MutedAlert" });

const acknowledgedAlert = alertSchema
  .extend({ by: z.string(), at: dateTime(), note: z.string() })
  .meta({ id: "AcknowledgedAlert" });

const alertChannel = record("AlertChannel", {
  name: z.string(),
  kind: z.enum(["webhook", "email"]),
  place: z.string().describe("Where it sends to, without anything secret."),
  least: z.enum(alertSeverities).describe("The severity from which on it is told."),
  deliveredAt: dateTime().nullable().describe("Null: never."),
  failingSince: dateTime().nullable().describe("Null: its last attempt succeeded, or there was none."),
  failures: z.int().describe("In a row."),
  failure: z.string().describe("Why the last attempt failed."),
  waiting: z.int().describe("Alerts that wait for its next attempt."),
});

export const alertList = record("AlertList", {
  at: dateTime(),
  alerts: z
    .array(alertSchema)
    .describe("The critical first, without what is muted or acknowledged; empty: nothing needs attention."),
  acknowledged: z
    .array(acknowledgedAlert)
    .describe("What somebody is at; it comes back when it ends and begins, or names something new."),
  muted: z
    .array(mutedAlert)
    .describe("What is the matter and told to nobody until an hour that somebody named."),
  channels: z.array(alertChannel).describe("Where alerts are sent; empty: nowhere."),
  incomplete: orNull(
    z.string(),
    `Why this is not all: the database could not be asked within a second, and these are what the coordinator knows of
itself. Null: it is all.`,
  ),
});
