/** The API of what people do about alerts: acknowledge them, and test the channels that they are sent to. */
import { z } from "zod";
import { type ApiOperations, answer, dateTime, errorAnswer, openRecord, post } from "../web/api-operation.ts";

const alertName = z.string().meta({ description: "Of the rule, as listed.", example: "crawler-offline" });

export const mostNote = 300;

const acknowledged = openRecord("AlertAcknowledgement", {
  name: z.string(),
  by: z.string(),
  at: dateTime(),
  note: z.string(),
  targets: z.array(z.string()).describe("What it named then; anything beyond brings it back."),
});

const muteTarget = z
  .string()
  .min(1)
  .max(200)
  .nullable()
  .default(null)
  .describe("A crawler or release that the alert names; null: all of the rule.");

/** A month. */
const mostMuteHours = 720;

export const alertsApi = {
  muteAlert: {
    ...post("/api/alerts/{name}/mute", "fleet-write"),
    summary: "Mute an alert until an hour that is named",
    description:
      "It is in no list, metric or exit code until then, and stands below the alerts with who muted it and why. A mute that is there is replaced.",
    parameters: { path: { name: alertName } },
    body: {
      schema: z.strictObject({
        target: muteTarget,
        hours: z.number().min(0.1).max(mostMuteHours),
        reason: z.string().trim().min(1).max(300),
      }),
      example: { target: "berlin", hours: 24, reason: "moves to another room" },
    },
    answers: {
      200: answer(
        openRecord("AlertMute", {
          name: z.string(),
          target: z.string().nullable(),
          until: dateTime(),
          reason: z.string(),
          mutedBy: z.string(),
        }),
        "The mute",
      ),
      404: errorAnswer("There is no such alert"),
    },
  },
  unmuteAlert: {
    ...post("/api/alerts/{name}/unmute", "fleet-write"),
    summary: "Unmute an alert",
    parameters: { path: { name: alertName } },
    body: { schema: z.strictObject({ target: muteTarget }), example: { target: "berlin" } },
    answers: {
      200: answer(
        openRecord("AlertUnmuted", { name: z.string(), target: z.string().nullable() }),
        "What is told again",
      ),
      404: errorAnswer("It is not muted"),
    },
  },
  acknowledgeAlert: {
    ...post("/api/alerts/{name}/acknowledge", "fleet-write"),
    summary: "Acknowledge an alert: somebody is at it",
    description:
      "It is listed apart, counts in no metric and no exit code, and nobody is told of it again, until it ends or names something new.",
    parameters: { path: { name: alertName } },
    body: {
      schema: z.strictObject({ note: z.string().trim().max(mostNote).default("") }),
      example: { note: "called the partner" },
    },
    answers: {
      200: answer(acknowledged, "The acknowledgement"),
      404: errorAnswer("There is no such alert, or it does not hold"),
    },
  },
  reopenAlert: {
    ...post("/api/alerts/{name}/reopen", "fleet-write"),
    summary: "Withdraw the acknowledgement of an alert",
    parameters: { path: { name: alertName } },
    body: { schema: z.strictObject({}), example: {} },
    answers: {
      200: answer(openRecord("AlertReopened", { name: z.string() }), "What is listed again"),
      404: errorAnswer("Nobody has acknowledged it"),
    },
  },
  testAlertChannel: {
    ...post("/api/alerts/channels/{channel}/test", "fleet-write"),
    summary: "Send a test to a channel of alerts",
    description:
      "One message at once, without the attempts that an alert gets; one in half a minute to each channel.",
    parameters: {
      path: { channel: z.string().meta({ description: "As listed by /api/alerts.", example: "email" }) },
    },
    body: { schema: z.strictObject({}), example: {} },
    answers: {
      200: answer(
        openRecord("AlertTest", {
          channel: z.string(),
          delivered: z.boolean(),
          words: z.string().describe("Why not; empty: it was taken."),
        }),
        "What came of it",
      ),
      404: errorAnswer("There is no such channel"),
      429: errorAnswer("A test was sent to it within the last half minute"),
    },
  },
} as const satisfies ApiOperations;
